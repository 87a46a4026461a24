"""A guard for engines that work in batches: hold still while too little is known of them."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.core.decision import Plan, Reason
from elastream.policies.base import Context, checked_fraction
from elastream.policies.guards.base import Guard, hold


@dataclass(frozen=True)
class TrustedBatches(Guard):
    """No change before the model of a batch is trusted, but for more when a batch is late."""

    least: float = 0.5
    """The part of the recent batches that the model must have foretold."""

    def __post_init__(self) -> None:
        checked_fraction("least", self.least)

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Leave operators as they are whose batches nobody can foretell."""
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
