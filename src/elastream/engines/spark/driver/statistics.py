"""From the total counts of members to what happened in an interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from elastream.core.chains import Chains
from elastream.core.folding import fold_edges, fold_operators
from elastream.core.latency import LatencyHistogram
from elastream.core.stats import (
    ExecutorStats,
    IntervalStats,
    Latency,
    OperatorStats,
    ReplicaStats,
    SourceStats,
)
from elastream.core.topology import Operator
from elastream.engines.spark.backends.dead_letters import DeadLetters
from elastream.engines.spark.backends.ledger import Counts, LaneState, Totals
from elastream.engines.spark.backends.members import Attendance, MemberName
from elastream.engines.spark.driver.condition import STALLED_UNITS, Condition
from elastream.engines.spark.driver.incidents import Incidents
from elastream.engines.spark.worker.function import is_async

NOTHING = Counts()

Samples = Mapping[str, tuple[float, ...]]
"""What arrived at every source in each sampling window."""
ConditionOf = Callable[[Mapping[MemberName, Attendance]], Condition]
"""The condition of these members."""


class Intervals:
    """What happened from one look at the counts to the next.

    Args:
        chains: What runs.
        dead_letters: A connection's own.
        totals: What was counted when the first interval began.
        condition_of: Of the members at the end of an interval.
        executors: What there is to know about executors in an interval of this length.
        sample: The length of a sampling window, in seconds.
    """

    def __init__(
        self,
        chains: Chains,
        dead_letters: DeadLetters,
        totals: Totals,
        condition_of: ConditionOf,
        executors: Callable[[float], ExecutorStats | None],
        sample: float,
    ) -> None:
        self.totals = totals
        """What had been counted when the last interval was told."""
        self._chains = chains
        self._incidents = Incidents(dead_letters)
        self._condition_of = condition_of
        self._executors = executors
        self._sample = sample
        self._number = 0
        self._duration = 0.0
        self._samples: dict[str, tuple[float, ...]] = {}
        """Since the last interval was told: what cannot be told now belongs to the next one."""

    def next(
        self,
        duration: float,
        totals: Totals,
        samples: Samples,
        members: Mapping[MemberName, Attendance],
    ) -> IntervalStats:
        """What happened since the last look, this many seconds ago."""
        self.add(duration, samples)
        return self.told(self.counted(totals, members), totals, members)

    def add(self, duration: float, samples: Samples) -> None:
        """Let the interval last longer."""
        self._duration += duration
        for name, of in samples.items():
            self._samples[name] = self._samples.get(name, ()) + of

    def counted(self, totals: Totals, members: Mapping[MemberName, Attendance]) -> IntervalStats:
        """What members have counted in the interval so far."""
        condition, samples = self._condition_of(members), dict(self._samples)
        return interval_stats(
            self._chains, self._number, self._duration, self.totals, totals, condition, samples
        )

    def told(
        self, stats: IntervalStats, totals: Totals, members: Mapping[MemberName, Attendance]
    ) -> IntervalStats:
        """End the interval: what was counted, with what has gone wrong, and executors."""
        executors = self._executors(stats.duration)
        noted = self._incidents.noted(stats, members)
        self.totals, self._number = totals, self._number + 1
        self._duration, self._samples = 0.0, {}
        return replace(noted, sample=self._sample, executors=executors)


def interval_stats(
    chains: Chains,
    interval: int,
    duration: float,
    before: Totals,
    after: Totals,
    condition: Condition,
    samples: Samples,
) -> IntervalStats:
    """What happened between two looks at the counts; a chain is one operator, with all inside."""
    topology = chains.declared
    gained: dict[str, dict[int, Counts]] = {name: {} for name in topology.order}
    for (name, number), counts in after.counts.items():
        earlier = before.counts.get((name, number), NOTHING)
        # Inactive replicas are many, and have nothing to subtract.
        less = NOTHING if counts == earlier else _less(counts, earlier)
        gained.setdefault(name, {})[number] = less
    edges = {
        (edge.origin, edge.target): float(
            sum(counts.sent.get(edge.target, 0) for counts in gained[edge.origin].values())
        )
        for edge in topology.edges
    }
    lost: Counter[str] = Counter()
    for counts in _all(gained):
        for target, events in counts.lost.items():
            lost[target] += events
    return IntervalStats(
        interval=interval,
        duration=duration,
        sources={
            source.name: _source(source.name, gained[source.name], after, samples)
            for source in topology.sources
        },
        operators=fold_operators(
            chains,
            {
                name: _operator(
                    op,
                    chains.head(name),
                    gained[name],
                    before,
                    after,
                    condition,
                    duration,
                    received=sum(edges[edge.origin, name] for edge in topology.incoming[name]),
                    lost=lost[name],
                    stalled=_stalled(chains, chains.head(name), after, condition),
                )
                for name, op in topology.by_name.items()
            },
        ),
        edges=fold_edges(chains, edges),
        latency=_latency(_all(gained)),
    )


def _stalled(chains: Chains, head: str, totals: Totals, condition: Condition) -> dict[int, float]:
    """Replicas that have been busy with one unit for unusually long, and for how many seconds."""
    found = condition.busy_for_long(head)
    if not found:
        return {}
    usual = _unit_seconds(chains, head, totals)
    return {number: of for number, of in found.items() if of > STALLED_UNITS * usual}


def _unit_seconds(chains: Chains, head: str, totals: Totals) -> float:
    """How long a replica is usually busy with what it takes at once.

    That is an event, or as many as its functions work on at the same time; smaller ones are taken
    by the dozen, but only for some milliseconds.
    """
    operators = [chains.declared.by_name[name] for name in chains.members(head)]
    names = {operator.name for operator in operators}
    busy = sum(counts.busy for (name, _), counts in totals.counts.items() if name in names)
    processed = sum(of.processed for (name, _), of in totals.counts.items() if name == head)
    if not processed:
        return chains.topology.by_name[head].execution_time or 0.0
    at_once = max(of.concurrency if is_async(of.function) else 1 for of in operators)
    return busy / processed * at_once


def _all(gained: Mapping[str, Mapping[int, Counts]]) -> Iterator[Counts]:
    return (counts for members in gained.values() for counts in members.values())


def _source(
    name: str, gained: Mapping[int, Counts], after: Totals, samples: Samples
) -> SourceStats:
    total = after.counts.get((name, 0), NOTHING)
    return SourceStats(
        emitted=gained.get(0, NOTHING).emitted,
        queued=total.processed - total.emitted,
        samples=samples.get(name, ()),
    )


def _operator(
    operator: Operator,
    head: str,
    mine: Mapping[int, Counts],
    before: Totals,
    after: Totals,
    condition: Condition,
    duration: float,
    received: float,
    lost: int,
    stalled: Mapping[int, float],
) -> OperatorStats:
    name = operator.name
    active = condition.active(head)
    there = frozenset(active)
    queued: dict[int | None, int] = {}
    for lane in after.lanes.get(name, {}).values():
        queued[lane.owner] = queued.get(lane.owner, 0) + lane.waiting
    return OperatorStats(
        received=received,
        processed=sum(counts.processed for counts in mine.values()),
        emitted=sum(counts.emitted for counts in mine.values()),
        queued=after.waiting(name),
        busy=sum(counts.busy for counts in mine.values()),
        active=len(active),
        saturated=sum(counts.saturated for counts in mine.values()),
        saturated_events=sum(counts.saturated_events for counts in mine.values()),
        units=sum(counts.units for counts in mine.values()),
        squares=sum(counts.squares for counts in mine.values()),
        dropped=sum(counts.dropped for counts in mine.values()) + lost,
        draining=condition.draining(head, after),
        pending=condition.pending(head),
        dead=condition.dead(head),
        stalled=stalled,
        heaviest_lane=_heaviest(before.lanes.get(name, {}), after.lanes.get(name, {}))
        if operator.router.key_is_lane
        else 0.0,
        replicas={
            number: ReplicaStats(
                processed=counts.processed,
                busy=counts.busy,
                queued=queued.get(number, 0),
                cpu=counts.cpu / duration,
                core=condition.cores.get((head, number)),
            )
            for number, counts in sorted(_with_idle(mine, active).items())
            if number in there or counts.processed
        },
    )


def _heaviest(before: Mapping[int, LaneState], after: Mapping[int, LaneState]) -> float:
    """The share of the events that arrived in the lane where most did."""
    arrived = [
        state.arrived - (before[lane].arrived if lane in before else 0)
        for lane, state in after.items()
    ]
    return max(arrived, default=0) / sum(arrived) if sum(arrived) else 0.0


def _with_idle(mine: Mapping[int, Counts], active: Sequence[int]) -> dict[int, Counts]:
    """Also those that have never done anything, and are active."""
    return dict.fromkeys(active, NOTHING) | dict(mine)


def _latency(gained: Iterable[Counts]) -> Latency | None:
    histogram = LatencyHistogram.sum(counts.latency for counts in gained if counts.latency)
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
        saturated=after.saturated - before.saturated,
        saturated_events=after.saturated_events - before.saturated_events,
        units=after.units - before.units,
        squares=after.squares - before.squares,
    )


def _histogram_less(
    after: LatencyHistogram | None, before: LatencyHistogram | None
) -> LatencyHistogram | None:
    if after is None:
        return None
    old = before.bins if before else {}
    gained = {number: events - old.get(number, 0.0) for number, events in after.bins.items()}
    return LatencyHistogram({number: events for number, events in gained.items() if events > 0})
