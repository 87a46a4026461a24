"""Guards: limits on any policy, applied to its plan one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from elastream.catalog import Catalog
from elastream.core.decision import Plan
from elastream.policies.base import Context
from elastream.policies.guards.base import Guard
from elastream.policies.guards.limits import Bounds, ByHand, MostChanges, TotalCap
from elastream.policies.guards.timing import (
    Cooldown,
    ExcludedPeriods,
    LeadTimeWindow,
    Pause,
    ScaleDownWindow,
    TrustedBatches,
)

__all__ = [
    "GUARDS",
    "Bounds",
    "ByHand",
    "Cooldown",
    "ExcludedPeriods",
    "Guard",
    "LeadTimeWindow",
    "MostChanges",
    "Pause",
    "ScaleDownWindow",
    "TotalCap",
    "TrustedBatches",
    "guarded",
]

GUARDS: Catalog[Guard] = Catalog(
    "guard",
    {
        "bounds": "elastream.policies.guards.limits:Bounds",
        "by-hand": "elastream.policies.guards.limits:ByHand",
        "cooldown": "elastream.policies.guards.timing:Cooldown",
        "excluded-periods": "elastream.policies.guards.timing:ExcludedPeriods",
        "lead-time-window": "elastream.policies.guards.timing:LeadTimeWindow",
        "most-changes": "elastream.policies.guards.limits:MostChanges",
        "pause": "elastream.policies.guards.timing:Pause",
        "scale-down-window": "elastream.policies.guards.timing:ScaleDownWindow",
        "total-cap": "elastream.policies.guards.limits:TotalCap",
        "trusted-batches": "elastream.policies.guards.timing:TrustedBatches",
    },
)


def guarded(plan: Plan, context: Context, guards: Iterable[Guard] = ()) -> Plan:
    """The plan that all guards allow; every operator's minimum and pool apply last."""
    for guard in (*guards, Bounds()):
        plan = guard.allow(plan, context)
    return plan
