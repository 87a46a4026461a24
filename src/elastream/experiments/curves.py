"""The figures of an experiment: what every run did over time, as numbers to draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from elastream.core.stats import IntervalStats
from elastream.experiments.base import Outcome
from elastream.experiments.runs import Result


@dataclass(frozen=True, slots=True)
class Line:
    """One run in one panel: a level per interval."""

    label: str
    times: list[float]
    """The ends of the intervals, in seconds."""
    values: list[float | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines that share an axis."""

    title: str
    lines: list[Line]
    logarithmic: bool = False


def panels(outcome: Outcome) -> list[Panel]:
    """Replicas and throughput, as in the papers, and latency."""
    labels = [row.label for row in outcome.experiment.rows]
    pairs = list(zip(labels, outcome.results, strict=True))
    arrived = _line("input", outcome.results[0], lambda s, td: float(sum(s.samples)) / td)
    return [
        Panel("active replicas", [_line(n, r, _replicas) for n, r in pairs]),
        Panel("throughput (events/s)", [arrived, *(_throughput(n, r) for n, r in pairs)]),
        # From milliseconds to minutes, as runs that fall behind are beside those that do not.
        Panel("mean latency (ms)", [_line(n, r, _latency) for n, r in pairs], logarithmic=True),
    ]


def _line(
    label: str, result: Result, value: Callable[[IntervalStats, float], float | None]
) -> Line:
    times = [cycle.time for cycle in result.cycles]
    return Line(label, times, [value(stats, result.run.td) for stats in result.stats])


def _throughput(label: str, result: Result) -> Line:
    last = result.run.application.topology.terminals

    def rate(stats: IntervalStats, td: float) -> float:
        return sum(stats.operators[name].processed for name in last) / td

    return _line(label, result, rate)


def _replicas(stats: IntervalStats, td: float) -> float:
    return float(sum(of.active for of in stats.operators.values()))


def _latency(stats: IntervalStats, td: float) -> float | None:
    return 1000 * stats.latency.mean if stats.latency else None
