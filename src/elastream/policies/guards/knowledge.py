"""A guard for engines that work in batches: change nothing while too little is known."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.core.decision import Plan, Reason
from elastream.policies.base import Context, checked_fraction
from elastream.policies.guards.base import Guard, hold


@dataclass(frozen=True)
class TrustedBatches(Guard):
    """No change before the batch model is trusted, except to grow when a batch is late."""

    least: float = 0.5
    """The share of recent batches that the model must have predicted."""

    def __post_init__(self) -> None:
        checked_fraction("least", self.least)

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Leave operators as they are if their batches cannot be predicted."""
        for change in plan.changes(context.active):
            batches = context.stats.operators[change.operator].batches
            if batches is None or (batches.model and batches.model.trust >= self.least):
                continue
            if change.added > 0 and batches.seconds > batches.every:
                continue
            trust = batches.model.trust if batches.model else 0.0
            text = f"{trust:.0%} of the recent batches predicted, {self.least:.0%} are needed"
            reason = Reason("trust", {"trust": trust, "needed": self.least}, text)
            plan = hold(plan, context, [change.operator], reason)
        return plan
