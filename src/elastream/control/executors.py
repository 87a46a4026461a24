"""The slow clock: how many executors a plan needs, now and by the time that one could have come.

Replicas come at once where there is a task slot for them, and slots come with executors, which take
seconds. So executors are asked for ahead of the need: enough slots for the replicas of the plan,
and for those that the upper quantile of the forecast will need on top within the lead time of an
executor. Replicas that the policy has to spare now are assumed to be wanted then, too.

One slot is always spare. An executor that is no longer needed is kept for as long as another would
take to come, because that is what its return would cost. So whatever the input does, it is paid for
at most twice as long as by somebody who knows when it will be needed again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median_high

from elastream.core.decision import EXECUTORS, Plan, Reason
from elastream.core.stats import ExecutorStats
from elastream.policies.base import Context, clipped
from elastream.policies.guards import Guard, guarded
from elastream.predictors.quantiles import HIGH

AHEAD = HIGH
"""The quantile of the forecast to have slots for."""
SPARE_SLOTS = 1
"""For the beginning of a rise, which no forecast sees before it comes."""
PASSING_SECONDS = 1.0
"""The median need of this many seconds counts: the need of a moment passes before an executor could
come, and would keep those that are there for long."""
LEAST_KEPT_SECONDS = 10.0
"""However quickly another would come, an executor is kept for this long after it was needed."""


class ExecutorLevel:
    """Adds the executors to plans, and remembers how many were needed."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()
        """When the last few decisions were made, and the slots that each needed."""
        self._needed: deque[tuple[float, int]] = deque()
        """When, and how many executors; each more than all that came later."""

    def added_to(self, plan: Plan, context: Context, guards: Iterable[Guard] = ()) -> Plan:
        """The plan with the executors that it needs, on engines that can be asked for them.

        Args:
            plan: Replicas by operator.
            context: What is known.
            guards: Limits on replicas, which hold for those of the near future, too.
        """
        executors = context.stats.executors
        if executors is None or executors.limits is None:
            return plan
        rate = highest_rate(context, executors.lead)
        now, work = context.stats.input / context.td, work_per_event(context)
        coming = {
            name: clipped(context, name, count + max(busy(rate, each) - busy(now, each), 0))
            for name, count in plan.replicas.items()
            for each in (work.get(name, 0.0),)
        }
        replicas = guarded(Plan(coming), context, guards).replicas.values()
        slots = self._lasting(SPARE_SLOTS + executors.beside + sum(replicas), context.now)
        needed = executors_for(slots, executors)
        count = self._kept(needed, executors, context.now)
        reasons = {**plan.reasons, EXECUTORS: (_reason(slots, needed, count, rate, executors),)}
        return replace(plan, executors=count, reasons=reasons)

    def _lasting(self, slots: int, now: float) -> int:
        """The need without the peaks of single decisions."""
        self._recent.append((now, slots))
        while self._recent[0][0] <= now - PASSING_SECONDS:
            self._recent.popleft()
        return median_high(slots for _, slots in self._recent)

    def _kept(self, needed: int, executors: ExecutorStats, now: float) -> int:
        """As many as were needed at any time within the time that they are kept."""
        if not self._needed:  # Whatever a run begins with may be needed soon.
            self._needed.append((now, max(executors.wanted, needed)))
        while self._needed and self._needed[-1][1] <= needed:
            self._needed.pop()
        self._needed.append((now, needed))
        oldest = now - max(executors.lead, LEAST_KEPT_SECONDS)
        while self._needed[0][0] < oldest:
            self._needed.popleft()
        return self._needed[0][1]


def highest_rate(context: Context, lead: float) -> float:
    """The highest input that is likely until an executor could have come, in events per second."""
    if context.outlook is None:
        return 0.0
    return context.outlook.highest_rate(AHEAD, context.td + lead)


def work_per_event(context: Context) -> Mapping[str, float]:
    """What an event of the input costs each operator whose cost is known, in seconds."""
    return {name: context.recent_demand[name].share * cost for name, cost in context.costs.items()}


def busy(rate: float, work: float) -> int:
    """How many replicas an input of this rate keeps busy."""
    return math.ceil(rate * work * (1 - 1e-9))


def executors_for(slots: int, executors: ExecutorStats) -> int:
    """The fewest that have this many task slots, within what may be asked for.

    >>> of = ExecutorStats(present=2, seconds=2.0, slots=4, beside=1, limits=(1, 8))
    >>> [executors_for(slots, of) for slots in (0, 8, 9, 99)]
    [1, 2, 3, 8]
    """
    assert executors.limits is not None
    least, most = executors.limits
    return min(max(math.ceil(slots / executors.slots), least), most)


def _reason(slots: int, needed: int, count: int, rate: float, executors: ExecutorStats) -> Reason:
    text = f"{slots} task slots"
    if rate:
        text += f" for up to {rate:,.0f} events/s within {executors.lead:.0f} s"
    text += f", {executors.slots} on each"
    if count > needed:
        text += f"; {needed} would do, but {count} were needed a moment ago"
    facts: dict[str, float | str] = {
        "slots": slots,
        "highest_rate": rate,
        "lead": executors.lead,
        "needed": needed,
    }
    return Reason("executors", facts, text)
