"""Processor time of processes and of all that they started, from Linux's /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def of_process(process: int) -> float:
    """Seconds of processor time so far; 0 for one that has ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def of_family(process: int) -> float:
    """That of a process and all its descendants that run now."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    total, waiting = 0.0, [process]
    while waiting:
        member = waiting.pop()
        total += of_process(member)
        waiting += children.get(member, [])
    return total
