"""Processes and their descendants, as `/proc` knows them."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def descendants(process: int) -> dict[int, str]:
    """The processes below this one, parents first, and how each was started."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, waiting = {}, list(children.get(process, ()))
    while waiting:
        number = waiting.pop(0)
        with suppress(OSError):
            found[number] = Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")
        waiting += children.get(number, ())
    return found


def is_alive(process: int) -> bool:
    """Whether it runs; one that has ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(process: int) -> None:
    """At once, without a chance to clean up."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
