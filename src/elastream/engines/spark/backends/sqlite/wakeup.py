"""Bells: how a process tells another on the same machine that there is something to look at.

A process that waits sleeps in the kernel and costs nothing; one that rings does not wait. A ring
that gets lost only means that the other looks a little later, when its time is over.
"""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

WORK, NEWS = b"w", b"n"
"""What a bell rings for: a batch, or something else, such as a plan."""


class Bell:
    """The bell of this process, under a name that others can ring."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = bell_folder(folder) / name
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(self._path))

    def wait(self, seconds: float) -> bool:
        """Sleep until somebody rings, but no longer than that; whether there is news."""
        rung = b""
        while select.select([self._socket], [], [], 0.0 if rung else seconds)[0]:
            rung += self._socket.recv(1)
        return NEWS in rung

    def close(self) -> None:
        """Take the bell down; the name is left to whoever has taken it over."""
        self._socket.close()


class Ringer:
    """Rings the bells of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(bell_folder(folder))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def ring(self, name: str, what: bytes = WORK) -> None:
        """Ring, if there is such a bell and somebody hears it."""
        with suppress(OSError):
            self._socket.sendto(what, f"{self._folder}/{name}")

    def ring_all(self, prefix: str = "", what: bytes = WORK) -> None:
        """Ring every bell of the folder whose name starts like this."""
        with suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                if name.startswith(prefix):
                    self.ring(name, what)

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()


def bell_name(operator: str, replica: int | str) -> str:
    """The name of a replica's bell; without a number, what the bells of an operator start with."""
    return f"{operator}.{replica}"


def remove_bells(folder: Path) -> None:
    """Remove all bells of a folder; who still waits by one is not woken any more."""
    shutil.rmtree(bell_folder(folder), ignore_errors=True)


def bell_folder(folder: Path) -> Path:
    """Names of sockets are short by law, and folders are not: the folder becomes a hash."""
    hashed = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"elastream-{hashed}"
