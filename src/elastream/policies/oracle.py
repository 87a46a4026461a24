"""`oracle`: what a policy could reach if it knew the future. For the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from elastream.core.decision import Plan, Reason
from elastream.core.demand import demands, required_replicas
from elastream.core.equations import pa_sps
from elastream.core.equations.bgelasor import Prices
from elastream.core.schedules import cheapest_schedule
from elastream.core.stats import EdgeName
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, unknown_cost


@dataclass(frozen=True)
class Oracle(Policy):
    """Either of two limits, both exact for the execution times and shares that were measured.

    - `replicas`: the fewest that leave nothing behind at the end of any interval. An interval with
      no backlog at its start needs just ⌈λ·et/td⌉, and fewer would leave a backlog.
    - `cost`: the schedule that costs least under BGElasor's model over all that is left of the
      future, by dynamic programming.
    """

    future: Sequence[float] = ()
    """What all sources send in every interval of the run, in events, from interval 0 on."""
    objective: Literal["replicas", "cost"] = "replicas"
    prices: Prices = field(default_factory=Prices)

    name = "oracle"
    paper = "a lower bound"

    def __post_init__(self) -> None:
        if not len(self.future):
            raise InvalidInputError("the oracle needs the future: the input of every interval")
        if self.objective not in ("replicas", "cost"):
            raise InvalidInputError(f"objective={self.objective!r} must be 'replicas' or 'cost'")

    def before(
        self,
        topology: Topology,
        shares: Mapping[EdgeName, float],
        execution_times: Mapping[str, float],
        td: float,
    ) -> Mapping[str, int]:
        """What the first interval will need, if all sources send the same amount."""
        reached = {source.name: 1 / len(topology.sources) for source in topology.sources}
        needed = {}
        for name in topology.order:
            if name in reached:
                continue
            incoming = topology.incoming[name]
            reached[name] = sum(shares[e.origin, name] * reached[e.origin] for e in incoming)
            if name not in execution_times:
                continue
            operator, events = topology.by_name[name], self.future[0] * reached[name]
            needed[name] = pa_sps.replicas(
                events, execution_times[name], td, operator.minimum, operator.pool
            )
        return needed

    def decide(self, context: Context) -> Plan:
        """Read the next interval, or all that are left, from the future."""
        ahead = list(self.future[context.stats.interval + 1 :]) or [0.0]
        if self.objective == "replicas":
            ahead = ahead[:1]
        needs = [self._needs(context, events, first=not i) for i, events in enumerate(ahead)]
        counts = dict(context.active)
        reasons: dict[str, tuple[Reason, ...]] = {}
        for name, active in context.active.items():
            if name not in needs[0]:
                reasons[name] = (unknown_cost(),)
                continue
            counts[name] = self._replicas(context, name, active, [need[name] for need in needs])
            text = f"{ahead[0] / context.td:,.0f} events/s will come in"
            reasons[name] = (Reason("the future", {"rate": ahead[0] / context.td}, text),)
        return Plan(counts, reasons)

    def _needs(self, context: Context, events: float, first: bool) -> dict[str, int]:
        """What every operator needs in an interval; what is queued now is for the first."""
        found = demands(context.topology, context.stats, events, context.shares, upstream=True)
        if not first:
            found = {name: type(of)(of.share, of.received, 0.0) for name, of in found.items()}
        return required_replicas(context.topology, found, context.execution_times, context.td)

    def _replicas(self, context: Context, name: str, active: int, need: list[int]) -> int:
        if self.objective == "replicas":
            return need[0]
        pool = context.topology.by_name[name].pool
        return int(cheapest_schedule(active, [active, *need], pool, self.prices)[1])
