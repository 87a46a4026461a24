"""`autoscale+`: DABS-Storm's parallelism management (section 4, equations 3 to 13)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from elastream.core.decision import Plan, Reason
from elastream.core.equations import autoscale_plus as eq
from elastream.core.stats import IntervalStats
from elastream.errors import InvalidInputError
from elastream.policies.base import (
    Context,
    Policy,
    checked_count,
    checked_fraction,
    unknown_cost,
)
from elastream.predictors.regression import Regression

COMBINE: dict[str, Callable[[float, float], float]] = {"max": max, "min": min}


@dataclass(frozen=True)
class AutoscalePlus(Policy):
    """Compares estimated input with capacity, operator by operator, down the DAG.

    An operator receives θ_i^p of what a parent processes: the selectivity of equation 4 and, where
    the parent has several children, the share that takes this edge.

    Equation 3 is fitted on the samples of the window where there are any, which is what comes from
    sources; what comes from other operators is measured once an interval. Equation 7 looks at all
    replicas that share a core, of whichever operator. Where an engine does not say which do, each
    is assumed to have its own core.

    In DABS-Storm every change restarts the topology; an engine has to be told to do the same.
    """

    weight: float = 0.3
    """λ: how much of what is used or reserved counts as capacity."""
    beta: float = 0.8
    """β: the working interval reaches from β·k to k."""
    combine: Literal["max", "min"] = "max"
    reserved: float = 1.0
    """ResCPU: the part of a core that each replica reserves."""
    window: int = 6
    """How many samples, or intervals, the regression of equation 3 looks back, and an interval's
    own samples at least."""
    regress: bool = True
    """Whether equation 3 estimates what comes; else as much as in the last interval."""
    settle: int = 1
    """How many intervals to ignore after a change."""

    name = "autoscale+"
    paper = "DABS-Storm, section 4"

    def __post_init__(self) -> None:
        checked_fraction("weight", self.weight)
        checked_fraction("beta", self.beta)
        checked_fraction("reserved", self.reserved)
        checked_count("window", self.window, least=2)
        checked_count("settle", self.settle, least=0)
        if self.combine not in COMBINE:
            raise InvalidInputError(f"combine={self.combine!r} must be 'max' or 'min'")

    def decide(self, context: Context) -> Plan:
        """Change the degree of the operators that leave their working interval."""
        settled = _settled(context.past, self.settle)
        if not settled or settled[-1] is not context.stats:
            reason = Reason("settling", {"intervals": self.settle}, "settling after a change")
            return Plan(context.active, dict.fromkeys(context.active, (reason,)))
        counts: dict[str, int] = {}
        reasons: dict[str, tuple[Reason, ...]] = {}
        for name, estimated in self._estimated_inputs(context, settled[-self.window :]).items():
            et = context.execution_times.get(name)
            if et is None:
                counts[name], reasons[name] = context.active[name], (unknown_cost(),)
            else:
                counts[name], reason = self._degree(context, name, estimated, et)
                reasons[name] = (reason,)
        return Plan(counts, reasons)

    def _estimated_inputs(
        self, context: Context, window: Sequence[IntervalStats]
    ) -> dict[str, float]:
        """Equations 3 to 5, from the sources down."""
        found: dict[str, float] = {}
        operators = context.topology.by_name
        for name in context.topology.order:
            if name not in operators:
                continue
            parents = [edge for edge in context.topology.incoming[name] if edge.origin in found]
            outputs = [
                eq.estimated_output(found[edge.origin], context.shares[edge.origin, name])
                for edge in parents
            ]
            own = self._received(context, name, window)
            pending = context.stats.operators[name].queued
            found[name] = eq.estimated_input(own, outputs, pending, COMBINE[self.combine])
        return found

    def _received(self, context: Context, name: str, window: Sequence[IntervalStats]) -> float:
        """EstimR: what the regression expects it to receive in the next interval (equation 3)."""
        origins = [edge.origin for edge in context.topology.incoming[name]]
        sources = context.stats.sources
        if all(origin in sources and sources[origin].samples for origin in origins):
            return sum(
                context.shares[origin, name]
                * self._next_interval([stats.sources[origin].samples for stats in window])
                for origin in origins
            )
        return self._next_interval([(stats.operators[name].received,) for stats in window])

    def _next_interval(self, parts: Sequence[Sequence[float]]) -> float:
        """The best of three regressions on the newest samples, added up over one interval on.

        Args:
            parts: The samples of every interval, oldest first.
        """
        ahead = len(parts[-1])
        samples = [sample for part in parts for sample in part][-max(ahead, self.window) :]
        if len(samples) < 2 or not self.regress:
            return sum(parts[-1])
        return eq.estimated_received(Regression().predict(samples, horizon=ahead).values.tolist())

    def _degree(
        self, context: Context, name: str, estimated: float, latency: float
    ) -> tuple[int, Reason]:
        """Equations 6 to 13 for one operator."""
        stats, limits = context.stats.operators[name], context.topology.by_name[name]
        usable = eq.operator_cpu(
            eq.usable_cpu(
                replica.cpu, self.reserved, _others(context.stats, name, number), self.weight
            )
            for number, replica in stats.replicas.items()
        )
        ideal = eq.ideal_degree(estimated, eq.capacity(context.td, latency, usable))
        facts: dict[str, float | str] = {
            "estimated_input": estimated,
            "usable_cpu": usable,
            "ideal": ideal,
        }
        text = f"{estimated / context.td:,.0f} events/s to process, ideally by {ideal:.1f}"
        if not eq.must_change(ideal, stats.active, self.beta):
            lower = eq.lower_bound(stats.active, self.beta)
            within = f"{text}, within {lower:.1f} to {stats.active}"
            return stats.active, Reason("working interval", facts, within)
        each = eq.reserved_capacity(context.td, latency, self.reserved, self.weight)
        return eq.new_degree(estimated, each, limits.minimum, limits.pool), Reason(
            "reserved capacity", facts, f"{text}, {each / context.td:,.0f} events/s reserved each"
        )


def _settled(past: Sequence[IntervalStats], settle: int) -> list[IntervalStats]:
    """The intervals without those in which the system settled after a change of replicas."""
    kept, left, before = [], 0, None
    for stats in past:
        active = {name: of.active for name, of in stats.operators.items()}
        if before is not None and active != before:
            left = settle
        if not left:
            kept.append(stats)
        left, before = max(left - 1, 0), active
    return kept


def _others(stats: IntervalStats, operator: str, number: int) -> list[float]:
    """UtilCPU of the other replicas on the core of this one."""
    core = stats.operators[operator].replicas[number].core
    if core is None:
        return []
    return [
        replica.cpu
        for name, of in stats.operators.items()
        for other, replica in of.replicas.items()
        if replica.core == core and (name, other) != (operator, number)
    ]
