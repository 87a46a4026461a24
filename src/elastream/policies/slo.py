"""`slo`: the fewest replicas that keep a latency objective. Ours.

It decides on a fast clock from what is there now: how fast events arrive and how bursty they are,
what waits and how soon it must be gone, what an event costs a busy replica. A forecast only counts
for replicas that take longer than an interval to come.

1. The rate is that of the longest time in which it has not moved (`recent_arrivals`). An operator
   holds still while its replicas are right for any rate within the rate's own spread.
2. What waits longer than three tenths of the objective must be gone within the objective.
3. The latency of the slowest path is what waits, what chance adds (`wait_quantile`), and the work
   itself. As long as it is above the objective, the operator on it whose latency falls most by one
   more replica gets one: so the objective is shared out by what keeping it costs at each.
4. A replica that is not needed goes once it has cost as much as a change does: whatever comes, that
   is at most twice what a clairvoyant would have paid (the ski rental problem).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from elastream.core.arrivals import Arrivals, recent_arrivals
from elastream.core.decision import Plan, Reason
from elastream.core.demand import Demand, demands, recent_shares
from elastream.core.queueing import wait_quantile
from elastream.core.slowest_path import SlowestPaths
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, clipped, unknown_cost

COUNTED_INTERVALS = 128
"""How many intervals the rate is looked for in."""
SHARE_SECONDS = 5.0
"""Over how long it is counted which way events go."""
TOLERATED = 0.5
"""What waits no longer than this part of the objective may wait on."""
COMPARED, EVERY = 40, 4
"""In how many intervals, and in which of them, what was measured is compared with the model."""
LEAST_LEFT = 0.4
"""At least this part of the objective is left for what waits, whatever else takes time."""
AHEAD = 0.95
"""Which quantile of the forecast counts, for replicas that take longer than an interval."""
KEYED = 5.0
"""How many times as much a change costs at an operator whose events are shared out by key."""

_DURATION = re.compile(r"\s*([0-9.]+)\s*(ms|s)?\s*")


@dataclass(frozen=True)
class Slo(Policy):
    """Keeps the latency of a share of all events, the quantile, below the objective."""

    objective: float = 0.5
    """From a source to the end of the pipeline, in seconds."""
    quantile: float = 0.99
    variation: float = 1.0
    """Standard deviation over mean of execution times; 1 is that of exponential ones."""
    change_cost: float = 0.1
    """What a change costs, in seconds of each replica that comes or goes."""

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
        demand = demands(context.topology, context.stats, 1.0, shares)
        times = {**context.execution_times, **context.service_times}
        # What no queue explains, hops and replicas that are not equally busy, no replica mends.
        left = self.objective - _unexplained(context, times, self.objective)
        goal = max(left, LEAST_LEFT * self.objective)
        loads = {
            name: self._load(context, name, demand[name], arriving, times[name], goal)
            for name in context.topology.by_name
            if name in times
        }
        counts = {name: self._settled(context, load) for name, load in loads.items()}
        paths = SlowestPaths(context.topology, {n: loads[n].latency(c) for n, c in counts.items()})
        self._raise(context, loads, counts, paths, goal)
        beside = self.objective - goal
        reasons = {
            name: (
                loads[name].reason(
                    context.active[name], counts[name], paths, self.objective, beside
                ),
            )
            if name in loads
            else (unknown_cost(),)
            for name in context.topology.by_name
        }
        return Plan({**context.active, **counts}, reasons)

    def _load(
        self,
        context: Context,
        name: str,
        demand: Demand,
        arriving: Arrivals,
        cost: float,
        goal: float,
    ) -> _Load:
        rate, lead = demand.share * arriving.rate, context.lead_times.get(name, 0.0)
        # The longer a rate has stood still, the surer one must be that it has moved.
        doubts = 1 + max(math.log2(arriving.seconds), 0.0) / 2
        margin = doubts * arriving.deviation * demand.share
        low, high = max(rate - margin, 0.0), rate + margin
        if lead > context.td and context.outlook is not None:
            ahead = demand.share * context.outlook.highest_rate(AHEAD, lead)
            low, high = max(low, ahead), max(high, ahead)
        drain = max(goal, context.td)
        return _Load(
            operator=name,
            rate=rate,
            low=low,
            high=high,
            backlog=demand.queued,
            waiting=_waiting(context, name),
            cost=cost,
            drain=drain,
            tolerated=TOLERATED * goal,
            ahead=context.td + lead,
            within=context.td + lead + drain,
            quantile=self.quantile,
            burstiness=arriving.burstiness,
            variation=self.variation,
        )

    def _settled(self, context: Context, load: _Load) -> int:
        """Enough for the rate and what waits; as many as now, if they may be right."""
        active = context.active[load.operator]
        fewest = clipped(context, load.operator, load.needed(load.low, active))
        most = clipped(context, load.operator, load.needed(load.high, active))
        if active < fewest:
            return active if load.is_bearable(active) else fewest
        return most if active > most and self._pays(context, load, most) else active

    def _pays(self, context: Context, load: _Load, enough: int) -> bool:
        """Whether the replicas that are too many have cost as much as it costs to let them go."""
        keyed = context.topology.by_name[load.operator].router.needs_key
        price, idle = self.change_cost * (KEYED if keyed else 1.0), 0.0
        for stats in reversed(context.past):
            of = stats.operators[load.operator]
            used = of.received * load.cost / stats.duration
            if of.active != context.active[load.operator] or used > enough:
                return False
            idle += stats.duration
            if idle >= price:
                return True
        return False

    def _raise(
        self,
        context: Context,
        loads: Mapping[str, _Load],
        counts: dict[str, int],
        paths: SlowestPaths,
        goal: float,
    ) -> None:
        """Add replicas where they help most, until the slowest path keeps the goal."""
        while paths.longest > goal:
            gains = {}
            for name in paths.slowest():
                if name in counts and counts[name] < context.topology.by_name[name].pool:
                    load, count = loads[name], counts[name]
                    gains[name] = load.latency(count) - load.latency(count + 1)
            best = max(gains, key=lambda name: gains[name], default=None)
            if best is None or gains[best] <= 0:
                return
            counts[best] += 1
            paths.change(best, loads[best].latency(counts[best]))


def slo(objective: str | float, quantile: float = 0.99, **parameters: float) -> Slo:
    """A latency objective as people say it: `"250 ms"`, `"1 s"`, or seconds.

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


@dataclass(frozen=True, slots=True)
class _Load:
    """What an operator has to do, and how long events take at it."""

    operator: str
    rate: float
    low: float
    high: float
    """Between these the rate may be, by chance, in events per second."""
    backlog: float
    """Events that wait for it, or upstream on the way to it."""
    waiting: float
    """Events that wait for it."""
    cost: float
    """What an event costs a busy replica, in seconds."""
    drain: float
    """How soon what waits must be gone, in seconds."""
    tolerated: float
    """How long may be waited, in seconds."""
    ahead: float
    """How long it takes until the next decision has an effect, in seconds."""
    within: float
    """How long it takes until more replicas could have made up for a lack of them, in seconds."""
    quantile: float
    burstiness: float
    variation: float

    def needed(self, rate: float, active: int) -> float:
        """Replicas for a rate, and for what waits too long with those that are active."""
        backlog = self.backlog
        if self.cost > 0:
            backlog = max(backlog - self.tolerated * active / self.cost, 0.0)
        work = (rate + backlog / self.drain) * self.cost
        return math.ceil(work * (1 - 1e-9)) if work < 1e9 else work

    def is_bearable(self, replicas: int) -> bool:
        """Whether no more waits than may, until replicas that are asked for next time are there.

        A rate that is only just too high need not be answered at once: it may be over by then.
        """
        waits = self.backlog * self.cost / replicas
        return waits + (self.low * self.cost / replicas - 1) * self.ahead <= self.tolerated

    def latency(self, replicas: int) -> float:
        """What the quantile of events takes at it, in seconds."""
        waits = wait_quantile(
            self.rate,
            self.cost,
            replicas,
            self.quantile,
            self.burstiness,
            self.variation**2,
            self.within,
        )
        return self.waiting * self.cost / replicas + waits + self.cost

    def reason(
        self, before: int, after: int, paths: SlowestPaths, objective: float, beside: float
    ) -> Reason:
        """Why it gets these replicas.

        What is told is the latency of the slowest path through it, with what comes on top of it.
        """
        through = paths.through(self.operator) + beside
        kept, otherwise = through, through - self.latency(after) + self.latency(before)
        text = f"{self.rate:,.0f} events/s"
        if self.high >= 1.01 * self.rate + 1:
            text += f" (up to {self.high:,.0f})"
        text += f", {1000 * self.cost:.3g} ms each"
        if self.backlog >= 1:
            text += f", {self.backlog:,.0f} queued"
        text += "; "
        if after != before:
            text += f"{before} would keep {_told(otherwise)}, "
        text += f"{after} keep {_told(kept)} of {_told(objective)}"
        if kept > objective:
            text += f": {_told(kept - objective)} too long, and no more replicas would help"
        facts: dict[str, float | str] = {
            "rate": self.rate,
            "highest_rate": self.high,
            "queued": self.backlog,
            "service_time": self.cost,
            "latency": kept,
            "latency_before": otherwise,
            "objective": objective,
        }
        return Reason("latency objective", facts, text)


def _arriving(context: Context) -> Arrivals:
    """What arrives at all sources, whether they could send it or not."""
    counts: list[float] = []
    durations: list[float] = []
    past = context.past[-COUNTED_INTERVALS - 1 :]
    for number in range(len(past) - 1, -1, -1):
        stats, before = past[number], past[max(number - 1, 0)]
        counts.append(max(stats.input + stats.held - before.held, 0.0))
        durations.append(stats.duration)
    return recent_arrivals(counts, durations)


def _unexplained(context: Context, times: Mapping[str, float], most: float) -> float:
    """By how much p99 was usually above what queues explain, in the recent past; in seconds."""
    found = []
    for stats in context.past[-1 : -COMPARED - 1 : -EVERY]:
        if stats.latency is None:
            continue
        waits = {
            name: (of.queued / max(of.active, 1) + 1) * times[name]
            for name, of in stats.operators.items()
            if name in times
        }
        found.append(stats.latency.p99 - SlowestPaths(context.topology, waits).longest)
    return min(max(median(found), 0.0), most) if found else 0.0


def _waiting(context: Context, name: str) -> float:
    """What waits for an operator, and at the sources right before it."""
    held = [
        context.stats.sources[edge.origin].queued
        for edge in context.topology.incoming[name]
        if edge.origin in context.stats.sources
    ]
    return context.stats.operators[name].queued + sum(held)


def _told(seconds: float) -> str:
    """A latency as people read it.

    >>> _told(0.62), _told(42.3)
    ('620 ms', '42 s')
    """
    return f"{1000 * seconds:,.0f} ms" if seconds < 10 else f"{seconds:,.0f} s"
