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
from dataclasses import dataclass

from elastream.core.arrivals import Arrivals
from elastream.core.decision import Plan, Reason
from elastream.core.demand import SHARE_SECONDS
from elastream.core.lead_time import LeadTime
from elastream.core.slowest_path import SlowestPaths
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, clipped, unknown_cost
from elastream.policies.slo.load import OperatorLoad
from elastream.policies.slo.past import P99, arriving, is_unreached, unexplained, waiting
from elastream.policies.slo.paths import LoadedPaths, Raised, reach
from elastream.policies.slo.surplus import kept, lasts, pays
from elastream.predictors.quantiles import HIGH

TOLERATED = 0.5
"""Events may wait for this share of the objective."""
LEAST_LEFT = 0.4
"""At least this share of what work leaves of the objective is for waiting, if hops take too long
for any number of replicas."""
LEAST_WAIT = 0.1
"""So is at least this share of the work's own time, even if work alone exceeds the objective."""
AHEAD = HIGH
"""The quantile of the forecast to plan for, if the lead time exceeds an interval."""
CALM = 0.25
"""A surplus replica goes if, without it, at most this share of what may wait beside the work would
have waited within the last minute."""

_DURATION = re.compile(r"\s*([0-9.]+)\s*(ms|s)?\s*")


@dataclass(frozen=True, slots=True)
class _Present:
    """What is so now, whatever the goal."""

    context: Context
    arriving: Arrivals
    beside: float
    """The part of the latency that no queue explains, in seconds."""
    work: float
    """How long work alone takes on the slowest path, in seconds."""
    reached: Mapping[str, float]
    """What full pools can pass on to every node at most, in events per second."""


@dataclass(frozen=True, slots=True)
class _Aim:
    """What can be kept, and at which operators it cannot."""

    goal: float
    """How long the slowest path may take, beside what no queue explains, in seconds."""
    paths: LoadedPaths
    full: Mapping[str, float]
    """How long events take at every operator with all replicas of all pools, in seconds."""
    hopeless: Set[str]
    """The operators that miss the goal by themselves with all of their pools."""


@dataclass(frozen=True)
class Slo(Policy):
    """Keeps a quantile of the latency of all events below the objective."""

    objective: float = 0.5
    """From a source to the end of the pipeline, in seconds."""
    quantile: float = P99
    """Which share of the events must keep it."""
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
        topology = context.topology
        now = _Present(
            context,
            arriving(context),
            beside=unexplained(context, self.quantile),
            work=SlowestPaths(topology, context.costs).longest,
            reached=reach(topology, context.costs, context.recent_shares),
        )
        aim = self._aim(now)
        settled: Mapping[str, int] = {
            name: self._settled(context, load) for name, load in aim.paths.loads.items()
        }
        if not now.arriving.changed:
            settled = kept(context, aim.paths, settled, aim.goal, aim.hopeless)
        pools = {name: topology.by_name[name].pool for name in settled}
        raised = aim.paths.raised(settled, pools, aim.goal, aim.hopeless)
        unknown = [name for name in topology.by_name if name not in settled]
        idle = {
            name: topology.by_name[name].minimum for name in unknown if is_unreached(context, name)
        }
        reasons = self._reasons(now, aim, raised)
        reasons |= {name: _unreached() if name in idle else unknown_cost() for name in unknown}
        return Plan(
            {**context.active, **raised.counts, **idle},
            {name: (reasons[name],) for name in topology.by_name},
        )

    def _aim(self, now: _Present) -> _Aim:
        """The objective without what no queue explains, or what can be kept instead.

        More replicas cannot mend what no queue explains: hops, and unevenly busy replicas. Nor do
        they make work itself quicker: where all of them miss the objective, so may a few.
        """
        topology = now.context.topology
        left = max(self.objective - now.beside, 0.0)
        least = max(LEAST_LEFT * (self.objective - now.work), LEAST_WAIT * now.work)
        goal = max(left, now.work + least)
        paths = self._paths(now, goal)
        full = paths.with_full_pools()
        hopeless = {name for name, seconds in full.items() if seconds > goal}
        if left < goal:
            # What waits now will be gone: it is no reason to be content with less from now on.
            lasting = {
                name: seconds - paths.loads[name].queueing(topology.by_name[name].pool)
                for name, seconds in full.items()
                if name not in hopeless
            }
            if SlowestPaths(topology, lasting).longest <= left:
                goal, paths = left, self._paths(now, left)
        return _Aim(goal, paths, full, hopeless)

    def _reasons(self, now: _Present, aim: _Aim, raised: Raised) -> dict[str, Reason]:
        at_best = SlowestPaths(now.context.topology, aim.full)
        return {
            name: load.reason(
                # There are none when their executors have died.
                max(now.context.active[name], 1),
                raised.counts[name],
                raised.fed[name],
                raised.paths,
                at_best,
                self.objective,
                now.beside,
            )
            for name, load in aim.paths.loads.items()
        }

    def _paths(self, now: _Present, goal: float) -> LoadedPaths:
        context = now.context
        loads = {
            name: self._load(now, name, cost, goal)
            for name in context.topology.by_name
            if (cost := context.costs.get(name)) is not None
        }
        return LoadedPaths(context.topology, loads, context.recent_shares)

    def _load(self, now: _Present, name: str, cost: float, goal: float) -> OperatorLoad:
        context, arrivals, demand = now.context, now.arriving, now.context.recent_demand[name]
        rate, leads = demand.share * arrivals.rate, context.lead_times.get(name, LeadTime())
        lead = leads.of(context.active[name] + 1)
        # The longer a rate has been stable, the more certain a change must be.
        doubts = 1 + max(math.log2(arrivals.seconds), 0.0) / 2
        margin = doubts * arrivals.deviation * demand.share
        drain = max(goal, context.td)
        return OperatorLoad(
            operator=name,
            rate=rate,
            share=demand.share,
            low=max(rate - margin, 0.0),
            high=rate + margin,
            usual=demand.share * arrivals.usual,
            reach=now.reached[name],
            slow=_slow(context, leads, demand.share * cost),
            backlog=demand.queued,
            waiting=waiting(context, name),
            cost=cost,
            drain=drain,
            tolerated=TOLERATED * goal,
            calm=CALM * TOLERATED * (goal - now.work),
            ahead=context.td + lead,
            within=context.td + lead + drain,
            quantile=self.quantile,
            burstiness=arrivals.burstiness,
            changed=arrivals.changed,
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
        if active <= enough or not pays(context, load, enough, self.change_cost):
            return active
        if active > enough + load.by_chance or load.changed:
            return enough
        return active - 1 if lasts(context, load, active - 1) else active


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
