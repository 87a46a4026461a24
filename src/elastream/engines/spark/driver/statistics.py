"""From what replicas have counted in all to what happened in an interval."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

from elastream.core.latency import LatencyHistogram
from elastream.core.stats import (
    IntervalStats,
    Latency,
    OperatorStats,
    ReplicaStats,
    SourceStats,
)
from elastream.core.topology import Topology
from elastream.engines.spark.backends.base import Counts, ReplicaName, Totals
from elastream.engines.spark.backends.sqlite import SqliteTransport

NOTHING = Counts()
Samples = Mapping[str, tuple[float, ...]]


class Sampler:
    """Watches how many events arrive at every source in each sampling window."""

    def __init__(self, folder: Path, sources: Sequence[str], seconds: float) -> None:
        self._transport = SqliteTransport(folder)
        self._sources = sources
        self._seconds = seconds
        self._samples: dict[str, deque[float]] = {name: deque() for name in sources}
        self.window_ended: Callable[[float, Totals, Samples], None] | None = None
        """Called at the end of every window: how long it was, all counts, and what arrived."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def take(self) -> dict[str, tuple[float, ...]]:
        """The windows since the last call, oldest first."""
        return {
            name: tuple(samples.popleft() for _ in range(len(samples)))
            for name, samples in self._samples.items()
        }

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()
        self._transport.close()

    def _run(self) -> None:
        began, before = monotonic(), self._arrived(self._transport.totals())
        while not self._stop.wait(self._seconds):
            totals, ended = self._transport.totals(), monotonic()
            now = self._arrived(totals)
            window = {name: (float(now[name] - before[name]),) for name in self._sources}
            for name, (sample,) in window.items():
                self._samples[name].append(sample)
            if self.window_ended:
                self.window_ended(ended - began, totals, window)
            began, before = ended, now

    def _arrived(self, totals: Totals) -> dict[str, int]:
        counts = totals.counts
        return {name: counts.get((name, 0), NOTHING).processed for name in self._sources}


def interval_stats(
    topology: Topology,
    interval: int,
    duration: float,
    before: Totals,
    after: Totals,
    active: Mapping[str, int],
    samples: Mapping[str, tuple[float, ...]],
) -> IntervalStats:
    """What happened between two looks at the counts."""
    members = after.counts.keys()
    gained = {name: _less(after.counts[name], before.counts.get(name, NOTHING)) for name in members}
    edges = {
        (edge.origin, edge.target): float(
            sum(
                counts.sent.get(edge.target, 0)
                for (member, _), counts in gained.items()
                if member == edge.origin
            )
        )
        for edge in topology.edges
    }
    return IntervalStats(
        interval=interval,
        duration=duration,
        sources={
            source.name: _source(source.name, gained, after, samples) for source in topology.sources
        },
        operators={
            name: _operator(name, gained, after, active[name], duration, edges)
            for name in topology.by_name
        },
        edges=edges,
        latency=_latency(gained),
    )


def _source(
    name: str,
    gained: Mapping[ReplicaName, Counts],
    after: Totals,
    samples: Mapping[str, tuple[float, ...]],
) -> SourceStats:
    total = after.counts.get((name, 0), NOTHING)
    return SourceStats(
        emitted=gained.get((name, 0), NOTHING).emitted,
        queued=total.processed - total.emitted,
        samples=samples[name],
    )


def _operator(
    name: str,
    gained: Mapping[ReplicaName, Counts],
    after: Totals,
    active: int,
    duration: float,
    edges: Mapping[tuple[str, str], float],
) -> OperatorStats:
    mine = {number: counts for (member, number), counts in gained.items() if member == name}
    return OperatorStats(
        received=sum(events for (_, target), events in edges.items() if target == name),
        processed=sum(counts.processed for counts in mine.values()),
        emitted=sum(counts.emitted for counts in mine.values()),
        queued=sum(events for (member, _), events in after.queued.items() if member == name),
        busy=sum(counts.busy for counts in mine.values()),
        active=active,
        dropped=sum(counts.dropped for counts in mine.values())
        + sum(counts.lost.get(name, 0) for counts in gained.values()),
        replicas={
            number: ReplicaStats(
                processed=counts.processed,
                busy=counts.busy,
                queued=after.queued.get((name, number), 0),
                cpu=counts.cpu / duration,
            )
            for number, counts in sorted(mine.items())
            if number < active or counts.processed
        },
    )


def _latency(gained: Mapping[ReplicaName, Counts]) -> Latency | None:
    histogram = LatencyHistogram.sum(counts.latency for counts in gained.values() if counts.latency)
    return Latency.from_histogram(histogram) if histogram.bins else None


def _less(after: Counts, before: Counts) -> Counts:
    """What was added to the counts."""
    return Counts(
        processed=after.processed - before.processed,
        emitted=after.emitted - before.emitted,
        dropped=after.dropped - before.dropped,
        busy=after.busy - before.busy,
        cpu=after.cpu - before.cpu,
        sent={name: events - before.sent.get(name, 0) for name, events in after.sent.items()},
        lost={name: events - before.lost.get(name, 0) for name, events in after.lost.items()},
        latency=_histogram_less(after.latency, before.latency),
    )


def _histogram_less(
    after: LatencyHistogram | None, before: LatencyHistogram | None
) -> LatencyHistogram | None:
    if after is None:
        return None
    old = before.bins if before else {}
    gained = {number: events - old.get(number, 0.0) for number, events in after.bins.items()}
    return LatencyHistogram({number: events for number, events in gained.items() if events > 0})
