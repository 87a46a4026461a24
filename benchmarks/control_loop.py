"""What a cycle of the control loop costs with 1,000 operators: `pa-sps` with `lr`, 50 intervals."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.planning import large_topology, statistics_of
from elastream.control import ControlLoop, Cycle, Steered
from elastream.control.history import History
from elastream.core.decision import Plan
from elastream.core.stats import IntervalStats, SourceStats
from elastream.core.topology import Topology
from elastream.engines.base import Watcher
from elastream.policies.pa_sps import PaSps
from elastream.predictors.linear import Lr

INTERVALS, TARGET_MS = 50, 50.0


class Recording:
    """An engine that plays back one interval over and over, with a changing input."""

    def __init__(self, topology: Topology, stats: IntervalStats) -> None:
        self.topology = topology
        self.clock = self
        self._stats = stats
        self._time = 0.0
        self._inputs = iter(60_000 + 20_000 * np.sin(np.arange(INTERVALS)))

    def now(self) -> float:
        """The time that has been slept."""
        return self._time

    def sleep_until(self, time: float) -> None:
        """Take no time at all."""
        self._time = time

    def wake(self) -> None:
        """Nobody sleeps."""

    def observe(self) -> IntervalStats:
        """The recorded interval with the next input."""
        events = float(next(self._inputs))
        source = SourceStats(events, 0.0, (events / 6,) * 6)
        return replace(self._stats, sources={"in": source})

    def apply(self, plan: Plan) -> None:
        """A recording does not react."""

    def watch(self, watcher: Watcher) -> None:
        """Nobody watches."""

    def close(self) -> None:
        """There is nothing to free."""


def cycle_ms(
    topology: Topology, stats: IntervalStats, record: Callable[[Cycle | Steered], object]
) -> float:
    """The median time of a cycle."""
    loop = ControlLoop(Recording(topology, stats), PaSps(), Lr(), record=record)
    taken = []
    for _ in range(INTERVALS):
        start = time.perf_counter()
        loop.cycle()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def main() -> bool:
    """Print the figure with and without a history."""
    topology = large_topology()
    stats = statistics_of(topology)
    bare = cycle_ms(topology, stats, lambda cycle: None)
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder) / "history.db")
        recorded = cycle_ms(topology, stats, history.record)
        history.close()
    return report(
        f"Control loop: {len(topology.operators):,} operators, {INTERVALS} intervals",
        [
            Figure("a cycle", f"{bare:.1f} ms", f"{TARGET_MS:.0f} ms", bare <= TARGET_MS),
            Figure("a cycle with a history of every edge", f"{recorded:.1f} ms"),
        ],
    )


if __name__ == "__main__":
    by_hand(main)
