"""How long from asking for a replica until it works; some may need something slow first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeadTime:
    """By levels: on one machine replicas come at once, and beyond it they wait for an executor.

    >>> lead = LeadTime(((0, 0.0), (4, 30.0)))
    >>> lead.of(4), lead.of(5), lead.longest
    (0.0, 30.0, 30.0)
    """

    levels: tuple[tuple[int, float], ...] = ()
    """Beyond this many replicas of an operator, one takes this many seconds; fewest first."""

    def of(self, replica: int) -> float:
        """How long the replica with this number takes, counted from 1, in seconds."""
        return next((seconds for beyond, seconds in reversed(self.levels) if replica > beyond), 0.0)

    @property
    def longest(self) -> float:
        """In seconds."""
        return max((seconds for _, seconds in self.levels), default=0.0)

    def slower_than(self, seconds: float) -> Iterator[tuple[int, float]]:
        """The levels whose replicas take longer."""
        return (level for level in self.levels if level[1] > seconds)
