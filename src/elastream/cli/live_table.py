"""The live table: what every operator does right now."""

from __future__ import annotations

from rich.table import Table

from elastream.control import Cycle
from elastream.core.topology import Topology

HEADINGS = ("operator", "active/pool", "in/s", "out/s", "queue", "busy")


def live_table(topology: Topology, cycle: Cycle) -> Table:
    """The last interval, with the forecast and what was decided for the next one."""
    stats, forecast = cycle.stats, cycle.forecast
    table = Table(title=f"{topology.name}, {cycle.time:,.0f} s: {cycle.outcome}", min_width=72)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "operator" else "right")
    if stats is None:
        table.caption = cycle.note
        return table
    td = stats.duration
    for name, of in stats.operators.items():
        planned = cycle.plan.replicas[name] if cycle.plan else of.active
        arrow = f" -> {planned}" if planned != of.active else ""
        table.add_row(
            name,
            f"{of.active}{arrow}/{topology.by_name[name].pool}",
            f"{of.received / td:,.0f}",
            f"{of.processed / td:,.0f}",
            f"{of.queued:,.0f}",
            f"{of.busy / (max(of.active, 1) * td):.0%}",
        )
    caption = f"input {sum(stats.samples) / td:,.0f}/s"
    if forecast:
        caption += f", {forecast.values[0] / td:,.0f}/s expected ({forecast.model})"
    if stats.latency:
        caption += f", latency {1000 * stats.latency.mean:,.0f} ms"
        caption += f", p99 {1000 * stats.latency.p99:,.0f} ms"
    table.caption = caption
    return table
