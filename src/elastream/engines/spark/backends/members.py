"""Who acts for a member of a pipeline: a process, of a generation."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass

MemberName = tuple[str, int]
"""An operator or a source, and the number of a replica in its pool."""


class SupersededError(Exception):
    """A member of a later generation is at work: this one came too late."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """Who acts for a member."""

    process: str
    """Never the same for two processes; see `this_process`."""
    generation: int
    heartbeat: int
    """Grows as long as the process is well."""
    busy_for: float
    """How long the function had been running at the last heartbeat, in seconds."""

    @property
    def pid(self) -> int:
        """The process id on the machine that it runs on."""
        return int(self.process.partition(":")[0])

    @property
    def machine(self) -> tuple[str, int] | None:
        """The machine that it runs on, and how many cores that has; None if it did not say.

        >>> Attendance("12:5ca1ab1e:8:left", 1, heartbeat=5, busy_for=0.0).machine
        ('left', 8)
        """
        _, _, where = self.process.partition(":")
        _, told, where = where.partition(":")
        cores, _, host = where.partition(":")
        return (host, int(cores)) if told else None


def this_process() -> str:
    """A name that no other process has: process id, something random, cores and machine."""
    machine = f"{os.cpu_count() or 1}:{socket.gethostname()}"
    return f"{os.getpid()}:{uuid.uuid4().hex}:{machine}"
