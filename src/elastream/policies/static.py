"""`static`: what Storm does, the same number of replicas whatever comes."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.core.decision import Plan, Reason
from elastream.policies.base import Context, Policy, checked_count, clipped


@dataclass(frozen=True)
class Static(Policy):
    """Every operator gets `replicas`, as far as its minimum and pool allow."""

    replicas: int = 1

    name = "static"
    paper = "Apache Storm"

    def __post_init__(self) -> None:
        checked_count("replicas", self.replicas)

    def decide(self, context: Context) -> Plan:
        """Always the same."""
        reason = Reason("fixed", {"replicas": self.replicas}, f"fixed at {self.replicas}")
        counts = {name: clipped(context, name, self.replicas) for name in context.topology.by_name}
        return Plan(counts, dict.fromkeys(counts, (reason,)))
