"""What waits now, for how long, and which replicas are missing."""

from __future__ import annotations

from typing import Any

from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.core.waiting import WaitingTime

DIGITS = 3


class Backlog:
    """Follows every queue of a pipeline, window by window.

    Args:
        topology: The pipeline.
        now: The engine's clock, in seconds.
    """

    def __init__(self, topology: Topology, now: float) -> None:
        self._operators = {name: WaitingTime(now) for name in topology.by_name}
        self._sources = {source.name: WaitingTime(now) for source in topology.sources}
        self.newest: dict[str, Any] = {"operators": {}, "sources": {}}
        """As the API returns it."""

    def add(self, stats: IntervalStats, now: float) -> None:
        """A sampling window has ended."""
        self.newest = {
            "operators": {
                name: {
                    "oldest": self._waited(self._operators[name], now, of.received, of.queued),
                    "draining": of.draining,
                    "pending": of.pending,
                    "dead": of.dead,
                    "stalled": len(of.stalled),
                }
                for name, of in stats.operators.items()
            },
            "sources": {
                name: {
                    "held": of.queued,
                    "lag": self._waited(
                        self._sources[name], now, sum(of.samples) or of.emitted, of.queued
                    ),
                }
                for name, of in stats.sources.items()
            },
        }

    def _waited(self, queue: WaitingTime, now: float, came: float, waits: float) -> float:
        return round(queue.after(now, came, waits), DIGITS)
