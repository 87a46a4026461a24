"""Joining consecutive stretches of time into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from elastream.core.latency import LatencyHistogram
from elastream.core.stats import (
    ExecutorStats,
    IntervalStats,
    Latency,
    OperatorStats,
    ReplicaStats,
    SourceStats,
)


def joined(parts: Sequence[IntervalStats], interval: int) -> IntervalStats:
    """What happened in all of these parts together, oldest first; there is at least one.

    What is counted adds up; what waits or is active is as at the end.
    """
    last = parts[-1]
    if len(parts) == 1:
        return replace(last, interval=interval)
    duration = sum(part.duration for part in parts)
    edges: defaultdict[tuple[str, str], float] = defaultdict(float)
    for part in parts:
        for edge, events in part.edges.items():
            edges[edge] += events
    return IntervalStats(
        interval=interval,
        duration=duration,
        sources={name: _source([part.sources[name] for part in parts]) for name in last.sources},
        operators={
            name: _operator([(part.duration, part.operators[name]) for part in parts], duration)
            for name in last.operators
        },
        edges=edges,
        latency=_latency([part.latency for part in parts if part.latency]),
        sample=last.sample,
        open=last.open,
        executors=_executors([part.executors for part in parts if part.executors]),
    )


def _source(parts: Sequence[SourceStats]) -> SourceStats:
    return SourceStats(
        emitted=sum(part.emitted for part in parts),
        queued=parts[-1].queued,
        samples=tuple(sample for part in parts for sample in part.samples),
    )


def _operator(parts: Sequence[tuple[float, OperatorStats]], duration: float) -> OperatorStats:
    _, last = parts[-1]
    return OperatorStats(
        received=sum(of.received for _, of in parts),
        processed=sum(of.processed for _, of in parts),
        emitted=sum(of.emitted for _, of in parts),
        queued=last.queued,
        busy=sum(of.busy for _, of in parts),
        active=last.active,
        dropped=sum(of.dropped for _, of in parts),
        draining=last.draining,
        pending=last.pending,
        dead=last.dead,
        stalled=last.stalled,
        set_aside=sum(of.set_aside for _, of in parts),
        errors=_errors([of.errors for _, of in parts]),
        restarted=sum(of.restarted for _, of in parts),
        saturated=sum(of.saturated for _, of in parts),
        saturated_events=sum(of.saturated_events for _, of in parts),
        heaviest_lane=_heaviest_lane([of for _, of in parts]),
        units=sum(of.units for _, of in parts),
        squares=sum(of.squares for _, of in parts),
        replicas=_replicas(parts, duration),
        inside={
            name: _operator([(seconds, of.inside[name]) for seconds, of in parts], duration)
            for name in last.inside
        },
    )


def _heaviest_lane(parts: Sequence[OperatorStats]) -> float:
    """Its share of all events: a heavy lane stays heavy, as its keys stay in it."""
    received = sum(of.received for of in parts)
    if not received:
        return parts[-1].heaviest_lane
    return sum(of.received * of.heaviest_lane for of in parts) / received


def _errors(parts: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    found: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        for error, events in part.items():
            found[error] += events
    return dict(found)


def _replicas(
    parts: Sequence[tuple[float, OperatorStats]], duration: float
) -> Mapping[int, ReplicaStats]:
    found: defaultdict[int, list[tuple[float, ReplicaStats]]] = defaultdict(list)
    for seconds, of in parts:
        for number, replica in of.replicas.items():
            found[number].append((seconds, replica))
    return {
        number: ReplicaStats(
            processed=sum(replica.processed for _, replica in of),
            busy=sum(replica.busy for _, replica in of),
            queued=of[-1][1].queued,
            cpu=sum(seconds * replica.cpu for seconds, replica in of) / duration,
            core=of[-1][1].core,
        )
        for number, of in sorted(found.items())
    }


def _executors(parts: Sequence[ExecutorStats]) -> ExecutorStats | None:
    return replace(parts[-1], seconds=sum(part.seconds for part in parts)) if parts else None


def _latency(parts: Sequence[Latency]) -> Latency | None:
    if not parts:
        return None
    total = sum(part.count for part in parts)
    mean = sum(part.mean * part.count for part in parts) / total
    histogram = LatencyHistogram.sum(part.histogram for part in parts if part.histogram)
    return Latency.from_histogram(histogram, mean)
