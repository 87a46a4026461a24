"""`pa-sps` and `presps`: replicas from the expected input, its way down the DAG, and the queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from elastream.core.decision import Plan, Reason
from elastream.core.demand import Demand, demands, required_replicas
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, unknown_cost


@dataclass(frozen=True)
class PaSps(Policy):
    """PA-SPS equations 2 to 7: a forecast of the input, and queues that flow down the DAG."""

    headroom: float = 1.0
    """A factor on the forecast; 1 as published."""

    name = "pa-sps"
    paper = "PA-SPS, section 3"

    @property
    def horizon(self) -> int:
        """The next interval."""
        return 1

    def __post_init__(self) -> None:
        if not 0 < self.headroom < float("inf"):
            raise InvalidInputError(f"headroom={self.headroom} must be above 0")

    def decide(self, context: Context) -> Plan:
        """Enough replicas for what the forecast and the queues will bring."""
        expected = self.headroom * context.expected_input
        found = demands(context.topology, context.stats, expected, context.shares, upstream=True)
        return plan_for(context, found, context.forecast.model if context.forecast else "")


@dataclass(frozen=True)
class Presps(Policy):
    """PRESPS equations 1 to 6, also known as PSPS: the last input again, and the own queue only."""

    name = "presps"
    paper = "PRESPS, section 3"

    def decide(self, context: Context) -> Plan:
        """Enough replicas for the same input again, and for queued events."""
        stats = context.stats
        found = demands(context.topology, stats, stats.input, context.shares, upstream=False)
        return plan_for(context, found, "as before")


def plan_for(context: Context, found: Mapping[str, Demand], model: str) -> Plan:
    """PA-SPS equation 2 for every operator, with a readable reason."""
    needed = required_replicas(
        context.topology, found, context.execution_times, context.td, context.stats
    )
    reasons = {
        name: (expectation(found[name], context.execution_times[name], context.td, model),)
        for name in needed
    }
    unknown = dict.fromkeys(context.topology.by_name.keys() - needed.keys(), (unknown_cost(),))
    return Plan({**context.active, **needed}, {**reasons, **unknown})


def expectation(demand: Demand, execution_time: float, td: float, model: str) -> Reason:
    """The forecast load of an operator, in words.

    >>> str(expectation(Demand(1.0, 126_300.0, 800.0), 0.0012, 30.0, "ann"))
    '4,210 events/s expected (ann), 1.2 ms each, 800 queued'
    """
    rate, cost_ms = demand.received / td, 1000 * execution_time
    text = f"{rate:,.0f} events/s expected ({model}), {cost_ms:.3g} ms each"
    if demand.queued >= 1:
        text += f", {demand.queued:,.0f} queued"
    facts: dict[str, float | str] = {
        "rate": rate,
        "queued": demand.queued,
        "execution_time": execution_time,
        "predictor": model,
    }
    return Reason("expected load", facts, text)
