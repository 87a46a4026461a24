"""A row that is a run in the simulator: its measures, and what it did over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elastream.control.run import Result, Run
from elastream.core.metrics import RunMetrics
from elastream.core.stats import IntervalStats
from elastream.experiments.work import Advance, Curve, Measured


@dataclass(frozen=True, slots=True)
class Simulated:
    """One run; a step is an interval."""

    run: Run

    @property
    def steps(self) -> int:
        """As many as the run has intervals."""
        return self.run.intervals

    def measure(self, advance: Advance) -> Measured:
        """Run it."""
        result = self.run.simulate(after_each=lambda cycle: advance(1))
        return Measured(_columns(result.metrics), _curves(result))


def _columns(metrics: RunMetrics) -> dict[str, float | None]:
    """A paper's latency is the mean."""
    values: dict[str, Any] = metrics.as_dict()
    values["latency_ms"] = metrics.latency_ms.mean if metrics.latency_ms else None
    return values


def _curves(result: Result) -> tuple[Curve, ...]:
    """Replicas and throughput, as in the papers, and latency."""
    times = [cycle.time for cycle in result.cycles]
    td, last = result.run.td, result.run.application.topology.terminals

    def each(value: Callable[[IntervalStats], float]) -> list[float]:
        return [value(stats) for stats in result.stats]

    arrived = each(lambda stats: float(sum(stats.samples)) / td)
    left = each(lambda stats: sum(stats.operators[name].processed for name in last) / td)
    active = each(lambda stats: float(sum(of.active for of in stats.operators.values())))
    latency = [1000 * stats.latency.mean if stats.latency else None for stats in result.stats]
    return (
        Curve("active replicas", times, active),
        Curve("throughput (events/s)", times, left, given=arrived),
        # From milliseconds to minutes, as runs that fall behind are beside those that do not.
        Curve("mean latency (ms)", times, latency, logarithmic=True),
    )
