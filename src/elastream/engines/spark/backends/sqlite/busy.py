"""Which replicas have anything to do: a byte for each, in memory that processes share.

Producers ask for every unit that they send. To read it from the tables would cost as much as taking
the unit does; this costs less than a microsecond. A byte may be out of date, and operators may
share some: then a unit waits a little where it need not, and nothing else happens.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from zlib import crc32

from elastream.engines.spark.backends.members import MemberName

FILE = "busy"
SIZE = 1 << 16


class BusyFlags:
    """One process's view of them; nobody is busy before they are opened, or if they cannot be."""

    def __init__(self) -> None:
        self._bytes: mmap.mmap | None = None

    def open(self, folder: Path) -> None:
        """Those of a state folder."""
        if self._bytes is not None:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with suppress(OSError):  # Without them, events are spread a little less evenly.
            descriptor = os.open(folder / FILE, flags, 0o600)
            try:
                # To write where the disk has no room for it would kill the process.
                os.posix_fallocate(descriptor, 0, SIZE)
                self._bytes = mmap.mmap(descriptor, SIZE)
            finally:
                os.close(descriptor)

    def note(self, name: MemberName, busy: bool) -> None:
        """A replica has something to do now, or nothing."""
        if self._bytes is not None:
            self._bytes[_place(name)] = busy

    def busy(self, name: MemberName) -> bool:
        """Whether it had, when it was last noted."""
        return self._bytes is not None and bool(self._bytes[_place(name)])

    def close(self) -> None:
        """Let go of the memory."""
        if self._bytes is not None:
            self._bytes.close()
            self._bytes = None


@cache
def _place(name: MemberName) -> int:
    operator, replica = name
    return (crc32(operator.encode()) + replica) % SIZE
