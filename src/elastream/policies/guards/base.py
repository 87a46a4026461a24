"""The contract of a guard: it allows a plan, or changes it and says why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from elastream.core.decision import Plan, Reason
from elastream.policies.base import Context


class Guard(ABC):
    """One limit on any policy."""

    @abstractmethod
    def allow(self, plan: Plan, context: Context) -> Plan:
        """The plan as far as this guard allows it."""


def hold(plan: Plan, context: Context, operators: Iterable[str], reason: Reason) -> Plan:
    """The plan with these operators left as they are, where it would have changed them."""
    active = context.active
    return plan.amended(
        {name: (active[name], reason) for name in operators if plan.replicas[name] != active[name]}
    )
