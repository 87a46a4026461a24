"""The work behind a row of a table, and what it measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Advance = Callable[[int], object]
"""Told of every few steps that are done, to show progress."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Something that was followed over time: a level per span of time."""

    title: str
    times: Sequence[float]
    """The ends of the spans, in seconds; the first begins at 0."""
    values: Sequence[float | None]
    given: Sequence[float] | None = None
    """What it answers to, the same for all rows: the input."""
    logarithmic: bool = False
    relative_to: str | None = None
    """The row whose values all are divided by when they are drawn."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of it: the columns of its row, and its part of the figures."""

    values: Mapping[str, float | None]
    curves: tuple[Curve, ...]
    spread: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation over several runs, where there were several."""
    commits: tuple[str, ...] = ()
    """The code that measured it, if that was another time."""


class Work(Protocol):
    """What one row does."""

    @property
    def steps(self) -> int:
        """How many steps it takes, for a progress bar."""

    def measure(self, advance: Advance) -> Measured:
        """Do it."""
