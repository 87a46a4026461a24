"""`slo`: the fewest replicas that keep a latency objective. Ours.

It decides on a fast clock from the present: how fast and how bursty events arrive, how many wait
and how soon they must be gone, and what an event costs a busy replica. Replicas whose lead time is
longer than an interval are planned ahead: enough for the upper quantile of the forecast over it.

1. The rate is that of the longest recent time in which it has not changed (`recent_arrivals`). An
   operator keeps its replicas while they are right for any rate within the rate's own spread. On
   an input that has just changed, surplus ones go by the rate itself.
2. A backlog of more than half of the objective must be gone within the objective. How many events
   that is depends on the replicas that will be there.
3. The latency of the slowest path is the time in queues, what overload and chance add to them
   (`wait_quantile`), and the work itself. What one operator holds back does not reach the next, so
   overload counts once. As long as that exceeds the objective, one more replica goes to the
   operator on the path that gains most from it: so the objective is divided by what keeping it
   costs at each. An operator that misses it by itself with all of its pool gets that, and is left
   out of the sum: it is no reason to fill other pools.
4. A surplus replica is removed once keeping it has cost as much as the change would: whatever
   comes, that is at most twice what a clairvoyant would have paid (the ski rental problem). If the
   change would cost more than all intervals that are remembered, those are enough.
5. On an input that has not changed, surplus replicas that chance alone may have called for are
   removed one at a time, and only if three things hold: none has come or gone for a minute; the
   others would have been enough throughout that minute; and at the highest rate within the
   spread, what chance seldom exceeds would not call for it again. Where events are few and take
   long, a quiet minute may be an accident, too. One replica is always such a surplus; there,
   several are. So noise does not make them come and go: close to what the others get through,
   chance adds up to a queue that calls for a replica, then the rate looks as if it could do
   without it, and so on. An input that does fall is followed at once, and what a jump took to
   clear its backlog goes at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from statistics import median

from elastream.core.arrivals import Arrivals, recent_arrivals
from elastream.core.decision import Plan, Reason
from elastream.core.demand import (
    Demand,
    demands,
    recent_intervals,
    recent_shares,
    recent_source_shares,
)
from elastream.core.lead_time import LeadTime
from elastream.core.slowest_path import SlowestPaths
from elastream.core.stats import EdgeName, Latency, OperatorStats
from elastream.errors import InvalidInputError
from elastream.policies.base import (
    REMEMBERED_INTERVALS,
    REMEMBERED_SECONDS,
    Context,
    Policy,
    clipped,
    unknown_cost,
)
from elastream.policies.slo_load import OperatorLoad
from elastream.policies.slo_paths import LoadedPaths, reach

COUNTED_INTERVALS = 128
"""How many intervals back the rate is looked for."""
SHARE_SECONDS = 5.0
"""How many seconds of events the shares of edges and sources are counted over."""
TOLERATED = 0.5
"""Events may wait for this share of the objective."""
COMPARED, EVERY = 40, 4
"""How many intervals, and every how many of them, measurement and model are compared in."""
LEAST_LEFT = 0.4
"""At least this share of what work leaves of the objective is for waiting, if hops take too long
for any number of replicas."""
LEAST_WAIT = 0.1
"""At least this share of the work's own time is, too, even if work alone exceeds the objective."""
AHEAD = 0.95
"""The quantile of the forecast to plan for, if the lead time exceeds an interval."""
P99 = 0.99
"""The quantile that need not be looked up in a histogram."""
HOLD_SECONDS = REMEMBERED_SECONDS
"""On an unchanged input, how long a surplus that chance explains is kept after a change."""
CALM = 0.25
"""Which share of what may wait, work being done, would have waited at most in that time without
one of them."""
SELDOM = 0.99997
"""The quantile that a surplus is kept for. Who looks four times a second sees something rarer once
in 140 minutes."""
KEYED = 5.0
"""How many times as much a change costs at an operator with a key."""

_DURATION = re.compile(r"\s*([0-9.]+)\s*(ms|s)?\s*")


@dataclass(frozen=True)
class Slo(Policy):
    """Keeps a quantile of the latency of all events below the objective."""

    objective: float = 0.5
    """From a source to the end of the pipeline, in seconds."""
    quantile: float = P99
    variation: float = 1.0
    """Standard deviation over mean of execution times, until it is measured; 1 is that of
    exponential ones."""
    change_cost: float = 0.1
    """What a change costs, in seconds of each replica added or removed."""

    name = "slo"
    paper = "elastream"
    td = 0.25
    needs_forecast = False

    def __post_init__(self) -> None:
        if not 0 < self.objective < math.inf:
            raise InvalidInputError(f"objective={self.objective} must be above 0 s")
        if not 0.5 <= self.quantile < 1:
            raise InvalidInputError(f"quantile={self.quantile} must be at least 0.5 and below 1")
        for name in ("variation", "change_cost"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInputError(f"{name}={getattr(self, name)} must be 0 or more")

    @property
    def horizon(self) -> int:
        """The next interval."""
        return 1

    def decide(self, context: Context) -> Plan:
        """The fewest replicas that keep the objective, where it can be kept."""
        arriving = _arriving(context)
        shares = recent_shares(context.topology, context.past, SHARE_SECONDS, context.shares)
        sources = recent_source_shares(context.past, SHARE_SECONDS)
        demand = demands(context.topology, context.stats, 1.0, shares, sources=sources)
        times = {**context.execution_times, **context.service_times}
        # More replicas cannot mend what no queue explains: hops, and unevenly busy replicas. Nor
        # do they make work itself quicker: where all of them miss the objective, so may a few.
        beside = _unexplained(context, times, self.objective, self.quantile)
        work = SlowestPaths(context.topology, times).longest
        waiting = max(LEAST_LEFT * (self.objective - work), LEAST_WAIT * work)
        left = self.objective - beside
        goal = max(left, work + waiting)
        loads = self._loads(context, demand, arriving, times, shares, goal, work)
        full = LoadedPaths(context.topology, loads, shares).with_full_pools()
        hopeless = {name for name, seconds in full.items() if seconds > goal}
        if left < goal:
            # What waits now will be gone: it is no reason to be content with less from now on.
            lasting = {
                name: seconds - loads[name].queueing(context.topology.by_name[name].pool)
                for name, seconds in full.items()
                if name not in hopeless
            }
            if SlowestPaths(context.topology, lasting).longest <= left:
                goal = left
                loads = self._loads(context, demand, arriving, times, shares, goal, work)
        settled: Mapping[str, int] = {
            name: self._settled(context, load) for name, load in loads.items()
        }
        if not arriving.changed:
            settled = _kept(context, loads, shares, settled, goal, hopeless)
        pools = {name: context.topology.by_name[name].pool for name in loads}
        paths = LoadedPaths(context.topology, loads, shares)
        raised = paths.raised(settled, pools, goal, hopeless)
        counts = dict(raised.counts)
        at_best = SlowestPaths(context.topology, full)
        idle = [
            name
            for name in context.topology.by_name
            if name not in loads and _is_unreached(context, name)
        ]
        counts |= {name: context.topology.by_name[name].minimum for name in idle}
        reasons = {
            name: (
                # There are none when their executors have died.
                loads[name].reason(
                    max(context.active[name], 1),
                    counts[name],
                    raised.fed[name],
                    raised.paths,
                    at_best,
                    self.objective,
                    beside,
                ),
            )
            if name in loads
            else (_unreached() if name in idle else unknown_cost(),)
            for name in context.topology.by_name
        }
        return Plan({**context.active, **counts}, reasons)

    def _loads(
        self,
        context: Context,
        demand: Mapping[str, Demand],
        arriving: Arrivals,
        times: Mapping[str, float],
        shares: Mapping[EdgeName, float],
        goal: float,
        work: float,
    ) -> dict[str, OperatorLoad]:
        reached = reach(context.topology, times, shares)
        return {
            name: self._load(
                context,
                name,
                demand[name],
                arriving,
                times[name],
                reached[name],
                _waiting(context, name, shares),
                goal,
                work,
            )
            for name in context.topology.by_name
            if name in times
        }

    def _load(
        self,
        context: Context,
        name: str,
        demand: Demand,
        arriving: Arrivals,
        cost: float,
        reach: float,
        waiting: float,
        goal: float,
        work: float,
    ) -> OperatorLoad:
        rate, leads = demand.share * arriving.rate, context.lead_times.get(name, LeadTime())
        lead = leads.of(context.active[name] + 1)
        # The longer a rate has been stable, the more certain a change must be.
        doubts = 1 + max(math.log2(arriving.seconds), 0.0) / 2
        margin = doubts * arriving.deviation * demand.share
        drain = max(goal, context.td)
        return OperatorLoad(
            operator=name,
            rate=rate,
            share=demand.share,
            low=max(rate - margin, 0.0),
            high=rate + margin,
            usual=demand.share * arriving.usual,
            reach=reach,
            slow=_slow(context, leads, demand.share * cost),
            backlog=demand.queued,
            waiting=waiting,
            cost=cost,
            drain=drain,
            tolerated=TOLERATED * goal,
            calm=CALM * TOLERATED * (goal - work),
            ahead=context.td + lead,
            within=context.td + lead + drain,
            quantile=self.quantile,
            burstiness=arriving.burstiness,
            changed=arriving.changed,
            variation=context.variations.get(name, self.variation),
        )

    def _settled(self, context: Context, load: OperatorLoad) -> int:
        """Enough for the rate and the queue; as many as now, if those may be right."""
        active = context.active[load.operator]
        fewest = clipped(context, load.operator, load.needed(load.low))
        # Only on an input that stands still are noise and a fall hard to tell apart.
        highest = load.rate if load.changed else max(load.high, load.usual)
        most = clipped(context, load.operator, load.needed(highest))
        planned = clipped(context, load.operator, load.slow)
        if active < max(fewest, planned):
            return max(active if load.is_bearable(active) else fewest, planned)
        enough = max(most, planned)
        if active <= enough or not self._pays(context, load, enough):
            return active
        if active > enough + load.by_chance or load.changed:
            return enough
        return active - 1 if _lasts(context, load, active - 1) else active

    def _pays(self, context: Context, load: OperatorLoad, enough: int) -> bool:
        """Whether keeping the surplus replicas has cost as much as removing them would."""
        keyed = context.topology.by_name[load.operator].router.needs_key
        price, idle = self.change_cost * (KEYED if keyed else 1.0), 0.0
        # The last replica goes first. If it was slow to come, it would cost that much time again.
        leads = context.lead_times.get(load.operator, LeadTime())
        price += leads.of(context.active[load.operator])
        for stats in reversed(context.past):
            of = stats.operators[load.operator]
            # Not what it received: that may be a backlog which others had, and which is gone.
            used = stats.input * load.share * load.cost / stats.duration
            if of.planned != context.active[load.operator] or used > enough:
                return False
            idle += stats.duration
            if idle >= price:
                return True
        # However high the price, what has been idle for as long as anybody remembers goes.
        return len(context.past) >= REMEMBERED_INTERVALS


def slo(objective: str | float, quantile: float = 0.99, **parameters: float) -> Slo:
    """The policy that keeps a latency objective with as few replicas as it can.

    Args:
        objective: How long events may take from a source to the end of the pipeline: `"250 ms"`,
            `"1 s"`, or a number of seconds.
        quantile: The share of the events for which that must hold.
        parameters: `change_cost`, what a change costs in seconds of each replica (0.1), and
            `variation`, the standard deviation over the mean of execution times until it has been
            measured (1).

    Examples:
        >>> slo("250 ms").objective, slo("1 s").objective, slo(0.5, quantile=0.95).quantile
        (0.25, 1.0, 0.95)
    """
    return Slo(seconds_of(objective), quantile, **parameters)


def seconds_of(duration: str | float) -> float:
    """A duration with its unit, or in seconds.

    >>> seconds_of("250ms")
    0.25
    """
    if not isinstance(duration, str):
        return float(duration)
    found = _DURATION.fullmatch(duration)
    try:
        value = float(found[1]) if found else math.nan
    except ValueError:
        value = math.nan
    if not value > 0:
        raise InvalidInputError(f"the objective {duration!r} must be like '250 ms', '1 s' or 0.25")
    return value / 1000 if found and found[2] == "ms" else value


def _arriving(context: Context) -> Arrivals:
    """What arrives at all sources, whether or not they could send it."""
    past = context.past[-COUNTED_INTERVALS - 1 :][::-1]
    befores = (*past[1:], past[-1])
    counts = [
        max(stats.input + stats.held - before.held, 0.0)
        for stats, before in zip(past, befores, strict=True)
    ]
    return recent_arrivals(counts, [stats.duration for stats in past])


def _lasts(context: Context, load: OperatorLoad, enough: int) -> bool:
    """Whether so many replicas would have been enough for a minute in which none came or went."""
    behind = 0.0
    for stats in reversed(recent_intervals(context.past, HOLD_SECONDS)):
        of = stats.operators[load.operator]
        behind = max(behind + of.received * load.cost - enough * stats.duration, 0.0)
        if of.planned != context.active[load.operator] or behind > load.calm * enough:
            return False
    return True


def _kept(
    context: Context,
    loads: Mapping[str, OperatorLoad],
    shares: Mapping[EdgeName, float],
    counts: Mapping[str, int],
    goal: float,
    hopeless: Set[str],
) -> Mapping[str, int]:
    """The same, with those surplus replicas that chance alone would soon call for again.

    The rate may be the highest within its spread, and seldom more events than that come together.
    """
    now = {name: max(context.active[name], count) for name, count in counts.items()}
    if now == counts:
        return counts
    worst = {name: replace(load, rate=load.high, quantile=SELDOM) for name, load in loads.items()}
    return LoadedPaths(context.topology, worst, shares).raised(counts, now, goal, hopeless).counts


def _is_unreached(context: Context, name: str) -> bool:
    """Whether no event has come to an operator in all the time that shares are counted over."""
    recent = recent_intervals(context.past, SHARE_SECONDS)
    return sum([stats.duration for stats in recent]) >= SHARE_SECONDS and not any(
        stats.operators[name].received or stats.operators[name].queued for stats in recent
    )


def _unreached() -> Reason:
    return Reason("no events", {}, f"no event has come within {SHARE_SECONDS:g} s")


def _slow(context: Context, leads: LeadTime, cost: float) -> int:
    """How many replicas to have because of what may come within the lead time of the last of them.

    Levels that come within an interval can wait until they are needed. `cost` is what one event of
    the whole input takes at the operator, in seconds.
    """
    planned = 0
    if context.outlook is not None:
        # A replica that is missing at the first look is known to take about one interval, or more.
        for beyond, seconds in leads.slower_than(context.td / 2):
            need = math.ceil(context.outlook.highest_rate(AHEAD, seconds) * cost * (1 - 1e-9))
            if need > beyond:
                planned = need
    return planned


def _unexplained(
    context: Context, times: Mapping[str, float], most: float, quantile: float
) -> float:
    """By how much the recent latency usually exceeded what queues explain, in seconds."""
    found = []
    for stats in context.past[-1 : -COMPARED - 1 : -EVERY]:
        if stats.latency is None:
            continue
        waits = {
            name: (_queue(of) / max(of.active, 1) + 1) * times[name]
            for name, of in stats.operators.items()
            if name in times
        }
        measured = _measured(stats.latency, quantile)
        found.append(measured - SlowestPaths(context.topology, waits).longest)
    return min(max(median(found), 0.0), most) if found else 0.0


def _measured(latency: Latency, quantile: float) -> float:
    """A quantile of what was measured, in seconds; p99 if the engine keeps no histogram."""
    if quantile == P99 or latency.histogram is None:
        return latency.p99
    return latency.histogram.quantile(quantile)


def _waiting(context: Context, name: str, shares: Mapping[EdgeName, float]) -> float:
    """What waits for an operator, including its share at the sources right before it."""
    held = [
        shares[edge.origin, name] * context.stats.sources[edge.origin].queued
        for edge in context.topology.incoming[name]
        if edge.origin in context.stats.sources
    ]
    return _queue(context.stats.operators[name]) + sum(held)


def _queue(of: OperatorStats) -> float:
    """What waits for an operator: of the events that it has, one at least is at work."""
    return max(of.queued - 1.0, 0.0)
