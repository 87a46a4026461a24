"""A run as it goes: the live table for people, or one line of JSON for every cycle."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from elastream.cli.render.logs import for_programs, report

if TYPE_CHECKING:
    from elastream.control import ControlLoop, Cycle


def watched(cycles: Iterable[Cycle], loop: ControlLoop) -> Iterator[Cycle]:
    """The cycles of the loop, shown as they come."""
    return _logged(cycles, loop) if for_programs() else _drawn(cycles, loop)


def _logged(cycles: Iterable[Cycle], loop: ControlLoop) -> Iterator[Cycle]:
    for cycle in cycles:
        changes = [str(change) for change in cycle.changes]
        facts = {"clock": cycle.time, "outcome": cycle.outcome, "note": cycle.note}
        report("cycle", **facts, changes=changes, health=str(loop.health()))
        yield cycle


def _drawn(cycles: Iterable[Cycle], loop: ControlLoop) -> Iterator[Cycle]:
    from rich.console import Console
    from rich.live import Live

    from elastream.cli.render.live_table import of_cycle

    console = Console(file=sys.stderr)
    with Live(console=console, auto_refresh=False) as live:
        for cycle in cycles:
            shown = of_cycle(loop.engine.topology, cycle, loop.health(), str(loop.problems))
            live.update(shown, refresh=True)
            yield cycle
    if not console.is_terminal:  # There, only the last table is written, and not ended.
        console.print()
