"""The live table: what every operator does right now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from elastream.control import Cycle, Outcome
from elastream.core.health import RUNNING, Health
from elastream.core.topology import Topology

HEADINGS = ("operator", "active/pool", "in/s", "out/s", "queue", "busy")


class Row(NamedTuple):
    """One operator."""

    name: str
    active: int
    planned: int
    pool: int
    received: float
    processed: float
    queued: float
    utilization: float
    inside: Sequence[Inside] = ()


class Inside(NamedTuple):
    """One operator inside a chain: it has neither replicas nor a queue."""

    name: str
    received: float
    processed: float
    execution_time: float | None


def of_cycle(
    topology: Topology, cycle: Cycle, health: Health = RUNNING, problems: str = ""
) -> Table:
    """The last interval, the forecast, what was decided for the next one, and what is wrong."""
    stats, forecast = cycle.stats, cycle.forecast
    # Without statistics, the note is what the table is about.
    skipped = cycle.outcome is Outcome.SKIPPED and stats is not None
    title = f"{topology.name}, {cycle.time:,.0f} s: {cycle.note if skipped else cycle.outcome}"
    if stats is None:
        return _table(title, (), _lines(health, problems, cycle.note))
    td, latency = stats.duration, stats.latency
    rows = [
        Row(
            name,
            of.active,
            cycle.plan.replicas[name] if cycle.plan else of.active,
            topology.by_name[name].pool,
            of.received / td,
            of.processed / td,
            of.queued,
            of.utilization(td),
            [
                Inside(inner, part.received / td, part.processed / td, part.execution_time)
                for inner, part in of.inside.items()
            ],
        )
        for name, of in stats.operators.items()
    ]
    caption = f"input {stats.input / td:,.0f}/s"
    if forecast:
        caption += f", {forecast.values[0] / td:,.0f}/s expected ({forecast.model})"
    if latency:
        caption += f", latency {1000 * latency.mean:,.0f} ms, p99 {1000 * latency.p99:,.0f} ms"
    if stats.executors:
        caption += f", {_executors(stats.executors.present)}"
    return _table(title, rows, _lines(health, problems, caption))


def of_sample(
    name: str,
    pools: Mapping[str, int],
    sample: Mapping[str, Any],
    note: str,
    health: Health = RUNNING,
    problems: str = "",
) -> Table:
    """A sampling window as a service reports it, with a note on the state of the run."""
    rows = [
        Row(
            operator,
            of["active"],
            of["active"],
            pools[operator],
            of["received"],
            of["processed"],
            of["queued"],
            of["utilization"],
            [
                Inside(inner, part["received"], part["processed"], part["execution_time"])
                for inner, part in sample.get("inside", {}).get(operator, {}).items()
            ],
        )
        for operator, of in sample["operators"].items()
    ]
    caption = f"input {sample['input']:,.0f}/s"
    if sample["forecast"] is not None:
        caption += f", {sample['forecast']:,.0f}/s expected"
    if sample["latency_p99"] is not None:
        p50, p99 = 1000 * sample["latency_p50"], 1000 * sample["latency_p99"]
        caption += f", latency p50 {p50:,.0f} ms, p99 {p99:,.0f} ms"
    if sample.get("executors") is not None:
        caption += f", {_executors(sample['executors'])}"
    return _table(
        f"{name}, {sample['time']:,.0f} s: {note}", rows, _lines(health, problems, caption)
    )


def _executors(count: int) -> str:
    return f"{count} executor{'' if count == 1 else 's'}"


def _lines(health: Health, problems: str, caption: str) -> str:
    """What is wrong comes first."""
    wrong = "" if health == RUNNING else str(health)
    return "\n".join(filter(None, (wrong, problems, caption)))


def _table(title: str, rows: Iterable[Row], caption: str) -> Table:
    table = Table(title=title, caption=caption, min_width=72)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "operator" else "right")
    for row in rows:
        arrow = f" -> {row.planned}" if row.planned != row.active else ""
        table.add_row(
            row.name,
            f"{row.active}{arrow}/{row.pool}",
            f"{row.received:,.0f}",
            f"{row.processed:,.0f}",
            f"{row.queued:,.0f}",
            f"{row.utilization:.0%}",
        )
        for inner in row.inside:
            each = inner.execution_time
            table.add_row(
                f"  → {inner.name}",
                "",
                f"{inner.received:,.0f}",
                f"{inner.processed:,.0f}",
                "",
                "" if each is None else f"{1e6 * each:,.0f} µs",
            )
    return table
