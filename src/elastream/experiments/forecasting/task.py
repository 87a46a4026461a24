"""What all models have to do: forecast the next samples, from every moment of the test part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from elastream.errors import InvalidInputError
from elastream.experiments.work import Advance

Values = NDArray[np.float64]
Moments = NDArray[np.int_]
"""Positions in the series: a forecast at one has seen all samples before it."""


@dataclass(frozen=True)
class Task:
    """A series in three parts: a model may learn from the first and be tuned on the second.

    >>> task = Task(np.arange(60.0), trained=40, validated=50, horizon=3)
    >>> len(task.test), task.truth(task.test)[-1]
    (8, array([57., 58., 59.]))
    """

    series: Values
    trained: int
    """How many samples there are to learn from."""
    validated: int
    """Where the part to tune on ends, and the test part begins."""
    horizon: int = 12

    def __post_init__(self) -> None:
        shortest = min(
            self.trained, self.validated - self.trained, len(self.series) - self.validated
        )
        if shortest < self.horizon:
            raise InvalidInputError(
                f"{len(self.series)} samples, {self.trained} to learn from and "
                f"{self.validated - self.trained} to tune on: every part needs at least "
                f"{self.horizon}, as many as a forecast"
            )

    @property
    def tuning(self) -> Moments:
        """From where a model may forecast to be tuned."""
        return np.arange(self.trained, self.validated - self.horizon + 1)

    @property
    def test(self) -> Moments:
        """From where the forecasts that count are made."""
        return np.arange(self.validated, len(self.series) - self.horizon + 1)

    def truth(self, moments: Moments) -> Values:
        """What came, a row for each moment."""
        return sliding_window_view(self.series, self.horizon)[moments]

    def windows(self, length: int, moments: Moments) -> Values:
        """The samples before each moment."""
        if length > self.trained - self.horizon:
            raise InvalidInputError(
                f"{self.trained} samples to learn from are too few for a window of {length} and "
                f"a horizon of {self.horizon}"
            )
        return sliding_window_view(self.series, length)[moments - length]


@dataclass(frozen=True, slots=True)
class Forecasts:
    """The forecasts from every moment of the test part, and how the model was made."""

    values: Values
    choice: str = ""
    """What was chosen on the part to tune on, in words."""


class Forecaster(Protocol):
    """One model of the table."""

    def steps(self, task: Task) -> int:
        """How many steps learning takes, for a progress bar."""

    def forecasts(self, task: Task, advance: Advance) -> Forecasts:
        """Learn, and forecast the test part."""
