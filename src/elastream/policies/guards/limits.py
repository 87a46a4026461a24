"""Guards that limit how many replicas there are, or how many operators change at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from elastream.core.decision import Plan, Reason
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, checked_count, clipped
from elastream.policies.guards.base import Guard, hold


@dataclass(frozen=True)
class Bounds(Guard):
    """Minimum and maximum replicas of operators; their declared minimum and pool always hold."""

    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.least.keys() & self.most.keys():
            if self.least[name] > self.most[name]:
                raise InvalidInputError(
                    f"bounds of {name!r}: at least {self.least[name]} is above "
                    f"at most {self.most[name]}"
                )

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Keep every operator within its bounds."""
        amendments = {}
        for name, wanted in plan.replicas.items():
            bounded = max(wanted, self.least.get(name, 0))
            bounded = clipped(context, name, min(bounded, self.most.get(name, bounded)))
            if bounded != wanted:
                text = f"{wanted} wanted, and {bounded} is the bound"
                amendments[name] = bounded, Reason("bounds", {"wanted": wanted}, text)
        return plan.amended(amendments)


@dataclass(frozen=True)
class ByHand(Guard):
    """These operators get the replicas that a person set, whatever the policy says."""

    replicas: Mapping[str, int]

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Override the plan for these operators."""
        reason = Reason("by hand", {}, "set by hand")
        return plan.amended(
            {
                name: (count, reason)
                for name, count in self.replicas.items()
                if plan.replicas[name] != count
            }
        )


@dataclass(frozen=True)
class TotalCap(Guard):
    """A limit on all replicas together: above the minimums, requests are cut in proportion."""

    most: int

    def __post_init__(self) -> None:
        checked_count("most", self.most)

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Divide what is left among the operators that ask for more than their minimum."""
        wanted = sum(plan.replicas.values())
        if wanted <= self.most:
            return plan
        least = {name: context.topology.by_name[name].minimum for name in plan.replicas}
        asked = {name: max(plan.replicas[name] - least[name], 0) for name in plan.replicas}
        shares = shared_out(max(self.most - sum(least.values()), 0), asked)
        text = f"{wanted} wanted in total, and {self.most} is the cap"
        reason = Reason("total cap", {"wanted": wanted, "cap": self.most}, text)
        return plan.amended(
            {
                name: (least[name] + share, reason)
                for name, share in shares.items()
                if least[name] + share != plan.replicas[name]
            }
        )


@dataclass(frozen=True)
class MostChanges(Guard):
    """A limit on how many operators change at once; those that grow most go first."""

    most: int

    def __post_init__(self) -> None:
        checked_count("most", self.most)

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Leave the others as they are until the next interval."""
        changes = sorted(plan.changes(context.active), key=lambda c: (c.added < 0, -abs(c.added)))
        reason = Reason("most changes", {"most": self.most}, f"only {self.most} change at once")
        return hold(plan, context, [change.operator for change in changes[self.most :]], reason)


def shared_out(total: int, asked: Mapping[str, int]) -> dict[str, int]:
    """Whole parts of `total` in proportion to what is asked, none more than asked.

    What rounding leaves over goes to the largest remainders.

    >>> shared_out(5, {"a": 6, "b": 3, "c": 0})
    {'a': 3, 'b': 2, 'c': 0}
    """
    whole = sum(asked.values())
    if whole <= total:
        return dict(asked)
    shares = {name: total * part // whole for name, part in asked.items()}
    by_remainder = sorted(asked, key=lambda name: (-(total * asked[name] % whole), name))
    for name in by_remainder[: total - sum(shares.values())]:
        shares[name] += 1
    return shares
