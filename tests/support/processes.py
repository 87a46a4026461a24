"""Processes and their descendants, as `/proc` knows them."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """A process: a number is given to another one some day, but not with the same start."""

    number: int
    started: int
    parent: int
    command: str

    @property
    def alive(self) -> bool:
        """Whether it runs; one that has ended and that nobody has asked about does not."""
        now = _look(Path(f"/proc/{self.number}"))
        return now is not None and now.started == self.started

    def kill(self) -> None:
        """At once, without a chance to clean up."""
        with suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL)


def descendants(number: int) -> list[Process]:
    """The processes below this one, parents first."""
    children: dict[int, list[Process]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if process := _look(folder):
            children.setdefault(process.parent, []).append(process)
    found = list(children.get(number, ()))
    for process in found:
        found += children.get(process.number, ())
    return found


def _look(folder: Path) -> Process | None:
    """The process, unless it has just ended."""
    try:
        state, parent, *more = (folder / "stat").read_text().rpartition(")")[2].split()
        command = (folder / "cmdline").read_text()
    except OSError:
        return None
    return None if state == "Z" else Process(int(folder.name), int(more[17]), int(parent), command)
