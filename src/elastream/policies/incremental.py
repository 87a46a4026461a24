"""`incremental`: one replica more or less, by CPU thresholds."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.core.decision import Plan, Reason
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, Policy, clipped


@dataclass(frozen=True)
class Incremental(Policy):
    """The threshold baseline that DABS-Storm is compared with (its section 7.2)."""

    low: float = 0.3
    """Below this utilisation, one replica is removed."""
    high: float = 0.8
    """Above this utilisation, one replica is added."""

    name = "incremental"
    paper = "DABS-Storm, section 7.2"

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high / 2 <= 0.5:
            raise InvalidInputError(
                f"low={self.low}, high={self.high}: high is at most 1, and low below half of it, "
                "or replicas would be added and removed for ever"
            )

    def decide(self, context: Context) -> Plan:
        """Look at each operator on its own."""
        counts: dict[str, int] = {}
        reasons: dict[str, tuple[Reason, ...]] = {}
        for name, active in context.active.items():
            busy = context.stats.operators[name].busy / (max(active, 1) * context.td)
            step = 1 if busy > self.high else -1 if busy < self.low else 0
            counts[name] = clipped(context, name, active + step)
            text = f"{busy:.0%} busy, thresholds {self.low:.0%} and {self.high:.0%}"
            reasons[name] = (Reason("threshold", {"utilization": busy}, text),)
        return Plan(counts, reasons)
