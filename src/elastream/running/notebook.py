"""A run in a notebook: a table that updates itself, and a picture below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from threading import Thread
from typing import Any

from elastream.control import Cycle
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.running.status import Status

WIDTH, HEIGHT = 480, 48
INPUT, REPLICAS = "#888888", "#1f5fa8"
REFRESH_SECONDS = 1.0
NEWEST_SECONDS = 2.0


def show_live(html: Callable[[], str], ended: Callable[[float], bool]) -> None:
    """Show the run below the cell, and update it until it has ended.

    Args:
        html: How the run looks now.
        ended: Waits for the end, at most this many seconds; returns whether the run has ended.
    """
    # Only a notebook asks for this, and a notebook has it.
    display: Any = import_module("IPython.display")
    shown: Any = display.display(display.HTML(html()), display_id=True)

    def refresh() -> None:
        over = shown is None
        while not over:
            over = ended(REFRESH_SECONDS)
            shown.update(display.HTML(html()))

    Thread(target=refresh, name="notebook", daemon=True).start()


def as_html(topology: Topology, status: Status, cycles: Sequence[Cycle]) -> str:
    """How a run looks now."""
    head = "".join(
        f"<th>{name}</th>"
        for name in ("operator", "replicas", "processed/s", "waiting", "busy", "set aside")
    )
    rows = "".join(_row(topology, status, cycles, name) for name in topology.by_name)
    return (
        f"<div><p>{escape(str(status))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"{_picture(cycles)}</div>"
    )


def _row(topology: Topology, status: Status, cycles: Sequence[Cycle], name: str) -> str:
    rate = busy = 0.0
    if newest := _newest(cycles):
        seconds = sum(stats.duration for stats in newest)
        of = [(stats.operators[name], stats.duration) for stats in newest]
        rate = sum(each.processed for each, _ in of) / seconds
        time = sum(max(each.active, 1) * duration for each, duration in of)
        busy = sum(each.busy for each, _ in of) / time
    cells = (
        escape(name),
        f"{status.replicas.get(name, 0)} of {topology.by_name[name].pool}",
        f"{rate:,.0f}",
        f"{status.waiting.get(name, 0.0):,.0f}",
        f"{busy:.0%}",
        f"{status.set_aside.get(name, 0.0):,.0f}",
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _newest(cycles: Sequence[Cycle]) -> list[IntervalStats]:
    """The last seconds: a single interval may be too short to say much."""
    found: list[IntervalStats] = []
    for cycle in reversed(cycles):
        if cycle.stats and sum(stats.duration for stats in found) < NEWEST_SECONDS:
            found.append(cycle.stats)
    return found


def _picture(cycles: Sequence[Cycle]) -> str:
    stats = [cycle.stats for cycle in cycles if cycle.stats]
    if len(stats) < 2:
        return ""
    inputs = [each.input / each.duration for each in stats]
    replicas = [float(sum(of.active for of in each.operators.values())) for each in stats]
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f"<title>input (grey) and active replicas (blue) of the last intervals</title>"
        f"{_line(inputs, INPUT)}{_line(replicas, REPLICAS)}</svg>"
        f"<p>input (grey), at most {max(inputs):,.0f} events/s; "
        f"active replicas (blue), at most {max(replicas):,.0f}</p>"
    )


def _line(values: Sequence[float], colour: str) -> str:
    top = max(values) or 1.0
    points = " ".join(
        f"{WIDTH * place / (len(values) - 1):.1f},{HEIGHT - (HEIGHT - 4) * value / top:.1f}"
        for place, value in enumerate(values)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
