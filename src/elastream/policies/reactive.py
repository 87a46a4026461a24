"""`reactive` and `slots`: rules that other autoscalers for Spark follow, to compare with.

Both look at what has happened, not at what will. On an engine without batches, the utilisation of
replicas stands for the length of a batch, and queued events stand for waiting tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from elastream.core.decision import Plan, Reason
from elastream.core.stats import OperatorStats
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, checked_fraction, clipped


@dataclass(frozen=True)
class Reactive(Policy):
    """One executor at a time, by how much of its trigger interval a batch takes.

    It grows when a batch takes longer than the interval, and shrinks when it takes less than `low`
    of it, unless the remaining executors would then take too long: otherwise one would go and come
    back for ever.
    """

    low: float = 0.75
    high: float = 1.0

    name = "reactive"
    paper = "Amadeus, Elastic Scaling for Spark Structured Streaming"

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise InvalidInputError(f"low={self.low} must be above 0, and below high={self.high}")

    def decide(self, context: Context) -> Plan:
        """One more or one less, and only when a batch has ended since the last decision."""
        counts: dict[str, int] = {}
        reasons: dict[str, tuple[Reason, ...]] = {}
        for name, stats in context.stats.operators.items():
            load, there, count = _load(stats, context.td), stats.costing, stats.planned
            if stats.batches is None or stats.batches.ended:
                fewer = load * there / max(there - 1, 1)
                # One that was asked for and has not come yet is not asked for again.
                if load >= self.high:
                    count = max(count, there + 1)
                elif load < self.low and fewer < self.high:
                    count = min(count, there - 1)
            counts[name] = clipped(context, name, count)
            text = f"a batch takes {load:.0%} of its interval, {self.low:.0%} and {self.high:.0%}"
            reasons[name] = (Reason("threshold", {"load": load}, f"{text} are the thresholds"),)
        return Plan(counts, reasons)


@dataclass(frozen=True)
class Slots(Policy):
    """By how many task slots are used, and how many tasks wait for one.

    It grows by what the waiting tasks need while more than `target` of the slots are used and tasks
    wait. It shrinks to a use of `target` when less than `low` of the slots are used.
    """

    low: float = 0.5
    target: float = 0.8

    name = "slots"
    paper = "Databricks, enhanced autoscaling"

    def __post_init__(self) -> None:
        checked_fraction("target", self.target)
        if not 0 < self.low < self.target:
            raise InvalidInputError(f"low={self.low} must be above 0, and below {self.target}")

    def decide(self, context: Context) -> Plan:
        """Look at each operator on its own."""
        counts: dict[str, int] = {}
        reasons: dict[str, tuple[Reason, ...]] = {}
        for name, stats in context.stats.operators.items():
            used, waiting, slots = _slots(stats, context.td)
            wanted, there = stats.planned, stats.costing
            if used >= self.target and waiting > 0:
                wanted = max(wanted, there + math.ceil(min(waiting / slots, 2.0**30)))
            elif used < self.low and used * there < self.target * (there - 1):
                wanted = min(wanted, max(math.ceil(used * there / self.target), 1))
            counts[name] = clipped(context, name, wanted)
            text = f"{used:.0%} of the task slots used, {waiting:.1f} tasks waiting"
            facts: dict[str, float | str] = {"used": used, "waiting": waiting}
            reasons[name] = (Reason("task slots", facts, text),)
        return Plan(counts, reasons)


def _load(stats: OperatorStats, td: float) -> float:
    """The share of its interval that a batch takes, or the share of capacity in use."""
    if stats.batches is not None:
        return stats.batches.seconds / stats.batches.every
    queued = stats.queued * (stats.execution_time or 0.0)
    return (stats.busy + queued) / (max(stats.active, 1) * td)


def _slots(stats: OperatorStats, td: float) -> tuple[float, float, int]:
    """The share of task slots in use, the waiting tasks, and the slots of a replica."""
    if stats.batches is not None:
        slots = stats.batches.cores
        used = stats.batches.running / max(stats.costing * slots, 1)
        return min(used, 1.0), stats.batches.waiting, slots
    return stats.utilization(td), stats.queued * (stats.execution_time or 0.0) / td, 1
