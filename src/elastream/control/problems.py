"""What has gone wrong with single events and replicas since a run started, counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from elastream.core.stats import IntervalStats, OperatorStats
from elastream.errors import without_numbers

MOST_ERRORS = 50
OTHERS = "other errors"
"""Errors that quote their event may be as many as events."""
UNNAMED = "unknown error"


class Failure(NamedTuple):
    """An operator and an error on which it set events aside, with numbers left out."""

    operator: str
    error: str


@dataclass(slots=True)
class Counts:
    """One operator."""

    set_aside: float = 0.0
    """Events."""
    dropped: float = 0.0
    """Events."""
    restarted: float = 0.0
    """Replicas."""


@dataclass(slots=True)
class Problems:
    """Adds up what intervals report. It is not thread-safe: hold a lock around calls."""

    operators: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    failures: dict[Failure, float] = field(default_factory=dict)
    """Events that were set aside."""

    @property
    def set_aside(self) -> float:
        """Events, over all operators."""
        return sum(self.failures.values())

    @property
    def worst(self) -> Failure | None:
        """The most frequent one."""
        return max(self.failures, key=lambda failure: self.failures[failure], default=None)

    def __str__(self) -> str:
        """How many events were set aside, and the most frequent reason; nothing if there is none.

        >>> print(Problems(failures={Failure("parse", "KeyError: 'id'"): 2400.0}))
        set aside: 2,400 events, most by 'parse': KeyError: 'id'
        """
        if self.worst is None:
            return ""
        operator, error = self.worst
        return f"set aside: {self.set_aside:,.0f} events, most by {operator!r}: {error}"

    def take(self, stats: IntervalStats) -> list[Failure]:
        """Add an interval or a sampling window; returns the failures that are new."""
        known = set(self.failures)
        for name, of in stats.operators.items():
            counts = self.operators[name]
            counts.set_aside += of.set_aside
            counts.dropped += of.dropped
            counts.restarted += of.restarted
        for failure, events in _failures(stats):
            if failure not in self.failures and len(self.failures) >= MOST_ERRORS:
                failure = Failure(failure.operator, OTHERS)
            self.failures[failure] = self.failures.get(failure, 0.0) + events
        return [failure for failure in self.failures if failure not in known]


def _failures(stats: IntervalStats) -> Iterator[tuple[Failure, float]]:
    each = [part for whole in stats.operators.items() for part in _parts(*whole)]
    for name, of in each:
        for error, events in of.errors.items():
            yield Failure(name, without_numbers(error)), events
        unnamed = of.set_aside - sum(of.errors.values())
        if unnamed > 0:
            yield Failure(name, UNNAMED), unnamed


def _parts(name: str, of: OperatorStats) -> Iterator[tuple[str, OperatorStats]]:
    """An operator, or those inside a chain: an error is one operator's."""
    yield from of.inside.items() if of.inside else [(name, of)]
