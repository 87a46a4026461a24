"""Machines on this one: each has its own network, disk, home and `/tmp`, and can be cut off.

They see the installed packages, and nothing of one another, as machines of a cluster do.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

DISK = Path("/mnt")
"""Where a machine's own disk is, as it sees it."""
SHARED = DISK / "shared"
"""What is mounted on all machines that have it, as a network file system is."""

_BOOT = """
set -e
mount --make-rprivate /
mount --bind "$1" /mnt
if [ -n "$2" ]; then mkdir -p /mnt/shared; mount --bind "$2" /mnt/shared; fi
mkdir -p /mnt/tmp /mnt/home /mnt/work
mount --bind /mnt/tmp /tmp
cd /mnt/work
shift 2
exec "$@"
"""


def why_not() -> str | None:
    """Why there can be no machines here, or None."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    missing = [tool for tool in ("ip", "unshare", "mount") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    tried = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True)
    return None if tried.returncode == 0 else "this system allows no network namespaces"


class Machine:
    """One of them."""

    def __init__(self, name: str, address: str, disk: Path, shared: Path | None) -> None:
        self.name = name
        self.address = address
        self._disk = disk
        self._shared = shared
        disk.mkdir(parents=True)

    def path(self, path: Path) -> Path:
        """Where we see a file of its disk."""
        return self._disk / path.relative_to(DISK)

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """The words that run a command there."""
        places = [str(self._disk), str(self._shared or "")]
        inside = ["unshare", "--mount", "sh", "-c", _BOOT, "sh", *places]
        return ["ip", "netns", "exec", self.name, *inside, *map(str, words)]

    @property
    def environment(self) -> dict[str, str]:
        """That of its commands."""
        spark = {"SPARK_LOCAL_IP": self.address, "SPARK_LOCAL_HOSTNAME": self.address}
        return {**os.environ, **spark, "HOME": str(DISK / "home"), "TMPDIR": "/tmp"}

    def cut(self) -> None:
        """Nothing gets to it or from it any more; nobody is told."""
        _ip("link", "set", self.name, "down")

    def mend(self) -> None:
        """It can be reached again."""
        _ip("link", "set", self.name, "up")

    def kill(self) -> None:
        """End everything that runs on it at once."""
        while numbers := self.processes:
            for number in numbers:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)

    @property
    def processes(self) -> set[int]:
        """The numbers of those that run on it."""
        return set(map(int, _ip("netns", "pids", self.name).split()))


class Machines:
    """A network of them; a context manager that leaves nothing behind.

    Args:
        folder: For their disks.
    """

    _numbers: Iterator[int] = itertools.count(1)

    def __init__(self, folder: Path) -> None:
        if (reason := why_not()) is not None:
            pytest.skip(reason)
        self._folder = folder
        # Processes of several test runs may have such networks at the same time.
        network = os.getpid() * 8 + next(self._numbers) % 8
        self._prefix = f"10.{200 + network // 256 % 50}.{network % 256}"
        self._bridge = f"el{network % 10_000_000}"
        self._machines: list[Machine] = []

    @property
    def address(self) -> str:
        """The address of this machine, on their network."""
        return f"{self._prefix}.1"

    def __enter__(self) -> Self:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self._machines:
            machine.kill()
            _ip("netns", "delete", machine.name)
        _ip("link", "delete", self._bridge)

    def add(self, shared: Path | None = None) -> Machine:
        """A new one; the shared folder, if any, is at `SHARED` there."""
        number = len(self._machines) + 2
        name = f"{self._bridge}-{number}"
        machine = Machine(name, f"{self._prefix}.{number}", self._folder / name, shared)
        _ip("netns", "add", name)
        self._machines.append(machine)
        inside = ["peer", "name", "eth0", "netns", name]
        _ip("link", "add", name, "type", "veth", *inside)
        _ip("link", "set", name, "master", self._bridge, "up")
        _ip("-n", name, "address", "add", f"{machine.address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _ip("-n", name, "link", "set", device, "up")
        return machine


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
