"""What was decided, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

EXECUTORS = "(executors)"
"""What changes and reasons call the executors of a cluster; no operator can be named so."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an operator gets its replicas: a sentence for people, facts for programs.

    >>> str(Reason("forecast", {"rate": 4210.0, "predictor": "ann", "execution_time": 0.0012,
    ...     "queued": 800.0}, "4,210 events/s expected (ann), 1.2 ms each, 800 queued"))
    '4,210 events/s expected (ann), 1.2 ms each, 800 queued'
    """

    rule: str
    """What made the decision: `forecast`, `cooldown`, `pool`, ..."""
    facts: Mapping[str, float | str]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Change:
    """More or fewer active replicas of one operator, or more or fewer executors."""

    operator: str
    before: int
    after: int
    reasons: tuple[Reason, ...] = ()

    @property
    def added(self) -> int:
        """k_i of algorithm 2: replicas to activate, or, below zero, to deactivate."""
        return self.after - self.before

    def __str__(self) -> str:
        why = "; ".join(str(reason) for reason in self.reasons)
        return f"{self.operator} {self.before} -> {self.after}" + (f": {why}" if why else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """How many replicas of each operator are to be active, and why.

    Examples:
        >>> plan = Plan({"clean": 2, "store": 3})
        >>> [str(change) for change in plan.changes({"clean": 2, "store": 1})]
        ['store 1 -> 3']
    """

    replicas: Mapping[str, int]
    reasons: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    executors: int | None = None
    """How many executors to have in total; None leaves them as they are."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "replicas", MappingProxyType(dict(self.replicas)))
        object.__setattr__(self, "reasons", MappingProxyType(dict(self.reasons)))

    def changes(
        self, active: Mapping[str, int], executors: int | None = None
    ) -> tuple[Change, ...]:
        """The changes from these active replicas to the plan (PA-SPS algorithm 2).

        Args:
            active: Replicas by operator.
            executors: How many have been asked for, where they can be.
        """
        before, after = dict(active), dict(self.replicas)
        if executors is not None and self.executors is not None:
            before[EXECUTORS], after[EXECUTORS] = executors, self.executors
        return tuple(
            Change(name, before[name], count, self.reasons.get(name, ()))
            for name, count in after.items()
            if count != before[name]
        )

    def amended(self, amendments: Mapping[str, tuple[int, Reason]]) -> Plan:
        """The plan with other replicas for some operators, each with one more reason."""
        replicas, reasons = dict(self.replicas), dict(self.reasons)
        for operator, (count, reason) in amendments.items():
            replicas[operator] = count
            reasons[operator] = (*reasons.get(operator, ()), reason)
        return replace(self, replicas=replicas, reasons=reasons)
