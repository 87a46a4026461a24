"""From a forecast of the input to replicas per operator, by walking the DAG from its sources.

Sources are nodes like any other. A source stands for its own part of the whole input λ_G, and what
it holds back because the pipeline is full counts as its queue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from elastream.core.equations import pa_sps
from elastream.core.stats import EdgeName, IntervalStats
from elastream.core.topology import Topology

SHARE_SECONDS = 5.0
"""How many seconds of events shares are counted over, where intervals are too short."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a node is expected to process in the next interval, in events."""

    share: float
    """θ_i(t): events that reach it per event of the whole input."""
    received: float
    """λ̂_i^r(t+1): fresh from the input."""
    queued: float
    """λ̂_i^q(t+1): left over from earlier intervals."""

    @property
    def expected(self) -> float:
        """λ̂_i(t+1): both together."""
        return pa_sps.expected_events(self.received, self.queued)


def output_shares(
    topology: Topology, stats: IntervalStats, remembered: Mapping[EdgeName, float] | None = None
) -> dict[EdgeName, float]:
    """θ_i^p(t) of every edge, as measured (PA-SPS equation 6).

    When its origin processed nothing, an edge keeps its remembered share, else its declared one,
    else all events: too many replicas for one interval do less harm than too few.
    """
    remembered = remembered or {}
    processed = {name: source.emitted for name, source in stats.sources.items()}
    processed |= {name: operator.processed for name, operator in stats.operators.items()}
    shares: dict[EdgeName, float] = {}
    for edge in topology.edges:
        name = edge.origin, edge.target
        otherwise = remembered.get(name, 1.0 if edge.share is None else edge.share)
        received = stats.edges.get(name, 0.0)
        shares[name] = pa_sps.output_share(received, processed[edge.origin], otherwise)
    return shares


def recent_shares(
    topology: Topology,
    past: Sequence[IntervalStats],
    seconds: float,
    otherwise: Mapping[EdgeName, float],
) -> dict[EdgeName, float]:
    """θ_i^p of every edge over the last seconds, for intervals that are too short on their own.

    When its origin processed nothing in all that time, an edge keeps its share in `otherwise`.
    """
    recent = recent_intervals(past, seconds)
    processed = {
        source.name: sum([stats.sources[source.name].emitted for stats in recent])
        for source in topology.sources
    } | {name: sum([of.operators[name].processed for of in recent]) for name in topology.by_name}
    return {
        name: pa_sps.output_share(
            sum([stats.edges.get(name, 0.0) for stats in recent]),
            processed[name[0]],
            otherwise[name],
        )
        for name in ((edge.origin, edge.target) for edge in topology.edges)
    }


def recent_source_shares(past: Sequence[IntervalStats], seconds: float) -> dict[str, float]:
    """Each source's part of what arrived in the last seconds, whether or not it could send it.

    If all sources were silent, they count as equal.
    """
    recent = recent_intervals(past, seconds)
    before = past[-len(recent) - 1] if len(past) > len(recent) else recent[-1]
    arrived = {}
    for name, now in past[-1].sources.items():
        sent = sum([stats.sources[name].emitted for stats in recent])
        arrived[name] = max(sent + now.queued - before.sources[name].queued, 0.0)
    return _parts(arrived)


def recent_intervals(past: Sequence[IntervalStats], seconds: float) -> list[IntervalStats]:
    """As many of the latest intervals as make up these seconds, if there are; newest first."""
    recent: list[IntervalStats] = []
    counted = 0.0
    for stats in reversed(past):
        recent.append(stats)
        counted += stats.duration
        if counted >= seconds:
            break
    return recent


def demands(
    topology: Topology,
    stats: IntervalStats,
    forecast: float,
    shares: Mapping[EdgeName, float],
    upstream: bool = True,
    sources: Mapping[str, float] | None = None,
) -> dict[str, Demand]:
    """What every operator is expected to process in the next interval.

    Args:
        topology: The pipeline.
        stats: The interval that has just ended.
        forecast: λ̂_G(t+1), in events: what all sources will send in the next interval.
        shares: θ_i^p(t) of every edge.
        upstream: Whether events that are queued upstream count (PA-SPS equation 7) or only the
            operator's own (PRESPS equation 5).
        sources: Each source's part of the input; by default, as in that interval.
    """
    if sources is None:
        sources = _parts({name: source.emitted for name, source in stats.sources.items()})
    found: dict[str, Demand] = {}
    for name in topology.order:
        edges = [(found[e.origin], shares[e.origin, e.target]) for e in topology.incoming[name]]
        source = stats.sources.get(name)
        if source is not None:
            share, own = sources[name], source.queued
        else:
            share = pa_sps.input_share([(part, origin.share) for origin, part in edges])
            own = stats.operators[name].queued
        above = [(origin.queued, part) for origin, part in edges] if upstream else []
        received = pa_sps.received_events(forecast, share)
        found[name] = Demand(share, received, pa_sps.queued_events(own, above))
    return {name: found[name] for name in topology.by_name}


def required_replicas(
    topology: Topology,
    expected: Mapping[str, Demand],
    execution_times: Mapping[str, float],
    duration: float,
    stats: IntervalStats | None = None,
) -> dict[str, int]:
    """r_i(t+1) of every operator whose execution time is known (PA-SPS equation 2).

    Where keys choose the replica, equation 2 counts an average one. With statistics, the busiest
    one counts there: see `for_busiest`.
    """
    found = {}
    for name, op in topology.by_name.items():
        if name in execution_times:
            events, each = expected[name].expected, execution_times[name]
            even = pa_sps.replicas(events, each, duration, op.minimum, op.pool)
            of = stats.operators[name] if stats else None
            if of is None or of.skew == 1.0:
                found[name] = even
            else:
                skewed = pa_sps.replicas(of.skew * events, each, duration, op.minimum, op.pool)
                found[name] = for_busiest(even, skewed, of.heaviest_lane)
    return found


def for_busiest(even: int, skewed: int, heaviest: float) -> int:
    """Replicas for an operator with a key, whose busiest replica has more than its share.

    More replicas take lanes from the busiest one, but its heaviest lane stays whole: once that has
    a replica to itself, more of them do nothing for it.

    Args:
        even: How many it needs if all were equally busy.
        skewed: How many if all were as busy as the busiest one.
        heaviest: The share of the events that the heaviest lane gets.

    >>> for_busiest(even=3, skewed=6, heaviest=0.1), for_busiest(even=3, skewed=6, heaviest=0.25)
    (6, 4)
    """
    return max(even, min(skewed, math.ceil(1 / heaviest - 1e-9)))


def _parts(events: Mapping[str, float]) -> dict[str, float]:
    """Each one's part of the whole; without any events, they count as equal."""
    total = sum(events.values())
    return {name: count / total if total > 0 else 1 / len(events) for name, count in events.items()}
