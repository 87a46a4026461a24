"""What a pipeline has done since it started, added up for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from elastream.control import Cycle, Steered
from elastream.core.stats import IntervalStats, Latency
from elastream.core.topology import Topology

BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Latencies, in seconds; one more bucket holds what is longer."""
COUNTED = ("received", "processed", "emitted", "dropped", "set_aside")


class Totals:
    """Counts that only grow, and the newest window."""

    def __init__(self, topology: Topology) -> None:
        self.window: IntervalStats | None = None
        self.arrived = 0.0
        self.executor_seconds: float | None = None
        """None where there are no executors."""
        self.operators = {name: dict.fromkeys(COUNTED, 0.0) for name in topology.by_name}
        self.latencies = [0.0] * (len(BUCKETS) + 1)
        self.latency_seconds = 0.0
        self.outcomes: Counter[str] = Counter()
        self.changes: Counter[str] = Counter()
        """By who made them."""

    def add(self, stats: IntervalStats) -> None:
        """A sampling window has ended."""
        # Samples do not add up: each is scaled to a window of the nominal length.
        held = self.window.held if self.window else stats.held
        self.arrived += max(stats.input + stats.held - held, 0.0)
        self.window = stats
        if stats.executors:
            self.executor_seconds = (self.executor_seconds or 0.0) + stats.executors.seconds
        for name, of in stats.operators.items():
            counts = self.operators[name]
            for counted in COUNTED:
                counts[counted] += getattr(of, counted)
        if stats.latency:
            self._add_latency(stats.latency)

    def count(self, entry: Cycle | Steered) -> None:
        """The loop has decided, or a person has changed something."""
        if isinstance(entry, Steered):
            self.changes[entry.who] += 1
        else:
            self.outcomes[entry.outcome] += 1

    def _add_latency(self, latency: Latency) -> None:
        self.latency_seconds += latency.mean * latency.count
        if latency.histogram:
            for seconds, events in latency.histogram.items():
                self.latencies[bisect_left(BUCKETS, seconds)] += events
