"""`static`: a fixed number of replicas, as in Storm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from elastream.core.decision import Plan, Reason
from elastream.core.stats import EdgeName
from elastream.core.topology import Topology
from elastream.policies.base import Context, Policy, checked_count, clipped


@dataclass(frozen=True)
class Static(Policy):
    """Every operator gets `replicas`, within its minimum and pool."""

    replicas: int = 1

    name = "static"
    paper = "Apache Storm"

    def __post_init__(self) -> None:
        checked_count("replicas", self.replicas)

    def before(
        self,
        topology: Topology,
        shares: Mapping[EdgeName, float],
        execution_times: Mapping[str, float],
        td: float,
    ) -> Mapping[str, int]:
        """The same from the start."""
        return {
            name: min(max(self.replicas, of.minimum), of.pool)
            for name, of in topology.by_name.items()
        }

    def decide(self, context: Context) -> Plan:
        """Always the same."""
        reason = Reason("fixed", {"replicas": self.replicas}, f"fixed at {self.replicas}")
        counts = {name: clipped(context, name, self.replicas) for name in context.topology.by_name}
        return Plan(counts, dict.fromkeys(counts, (reason,)))
