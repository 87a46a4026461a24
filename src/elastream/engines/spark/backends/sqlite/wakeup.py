"""Wake-ups: how a process tells another on the same machine to look for news.

A process that waits sleeps in the kernel and costs nothing; one that wakes others does not wait. A
wake-up that gets lost only means that the other looks a little later, when its time is over.
"""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from elastream.engines.spark.backends.members import MemberName
from elastream.errors import InvalidInputError

WORK, NEWS = b"w", b"n"
"""What a member is woken for: events, or something else, such as a plan."""
LONGEST = 40
"""Characters of a temporary folder that leave room for a member's name in 107."""
LONGEST_NAME = 24
"""Characters of an operator's name that do so, too; of a longer one, a hash is used."""


class Sleeper:
    """The receiving end, of a member that waits."""

    def __init__(self, folder: Path, name: MemberName) -> None:
        self._path = socket_folder(folder) / socket_name(name)
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(self._path))

    def wait(self, seconds: float) -> bool:
        """Sleep until somebody wakes us, but no longer than that; whether there is news."""
        received = b""
        while select.select([self._socket], [], [], 0.0 if received else seconds)[0]:
            received += self._socket.recv(1)
        return NEWS in received

    def close(self) -> None:
        """Close the socket; its name is left to the process that has taken it over."""
        self._socket.close()


class Waker:
    """The sending end."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(socket_folder(folder))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._addresses: dict[MemberName, str] = {}

    def wake(self, name: MemberName, what: bytes = WORK) -> None:
        """Wake a member, if it is there."""
        address = self._addresses.get(name)
        if address is None:
            address = self._addresses[name] = f"{self._folder}/{socket_name(name)}"
        self._send(address, what)

    def wake_all(self, operator: str | None = None, what: bytes = WORK) -> None:
        """Wake every member, or those of one operator."""
        prefix = "" if operator is None else f"{_short(operator)}."
        with suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                if name.startswith(prefix):
                    self._send(f"{self._folder}/{name}", what)

    def wake_all_but_idle(self, pools: Iterable[str], at_work: Iterable[MemberName]) -> None:
        """Tell every member that there is news, but of these operators only those at work."""
        prefixes = tuple(f"{_short(operator)}." for operator in pools)
        wanted = set(map(socket_name, at_work))
        with suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                if name in wanted or not name.startswith(prefixes):
                    self._send(f"{self._folder}/{name}", NEWS)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _send(self, address: str, what: bytes) -> None:
        try:  # noqa: SIM105 - `suppress` takes longer than to send, and every unit is announced
            self._socket.sendto(what, address)
        except OSError:
            pass


def socket_name(name: MemberName) -> str:
    """The file name of a member's socket.

    >>> socket_name(("parse", 3)), socket_name(("enrich_orders_with_customers", 3))
    ('parse.3', 'enrich_orde-a15b41f07a87.3')
    """
    return f"{_short(name[0])}.{name[1]}"


def _short(operator: str) -> str:
    if len(operator) <= LONGEST_NAME:
        return operator
    return f"{operator[:11]}-{_hashed(operator)}"


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def remove_sockets(folder: Path) -> None:
    """Remove all sockets of a state folder; who still waits is not woken any more."""
    shutil.rmtree(socket_folder(folder), ignore_errors=True)


def socket_folder(folder: Path) -> Path:
    """A private folder for the sockets of a state folder.

    Names of sockets are short by law, and folders are not: the folder becomes a hash, and a long
    temporary folder is not used. Temporary folders are open to all, so ours must be a real folder,
    and nobody else's.
    """
    temporary = tempfile.gettempdir()
    ours = Path(temporary if len(temporary) <= LONGEST else "/tmp") / f"elastream-{os.geteuid()}"
    hashed = _hashed(str(folder.resolve()))
    for made in (ours, ours / hashed):
        with suppress(FileExistsError):
            made.mkdir(mode=0o700)
        found = made.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise InvalidInputError(
                f"{made} is not a folder of yours: remove it, or set TMPDIR to another place"
            )
        if found.st_mode & 0o077:
            made.chmod(0o700)
    return ours / hashed
