"""What a model must beat: forecasts that need no model.

`basic`, PA-SPS' own yardstick, repeats as many samples as are asked for, which is weak beyond one
step. None of these is meant to run a pipeline with, so none has a name in the catalogue; a backtest
shows them next to the models.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from elastream.predictors.base import Predictor, Samples

DAY, WEEK = 86_400.0, 7 * 86_400.0
WINDOW = 12


class LastValue(Predictor):
    """The last value, repeated.

    >>> LastValue().predict([1, 2, 3], horizon=2).values
    array([3., 3.])
    """

    name = "(last value)"

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        return np.full(horizon, history[-1])


class WindowMean(Predictor):
    """The mean of the last few samples, all along.

    >>> WindowMean(2).predict([1, 2, 4], horizon=2).values
    array([3., 3.])
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self.name = f"(mean of {window})"

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        return np.full(horizon, history[-self.window :].mean())


class SameTime(Predictor):
    """What came at the same time a season ago.

    >>> SameTime(3, "(3 samples before)").predict([5, 6, 7, 8], horizon=4).values
    array([6., 7., 8., 6.])
    """

    def __init__(self, season: int, name: str) -> None:
        self.name = name
        self.wants = self.least_samples = season

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        season = history[-self.wants :]
        return np.resize(season, horizon)


def yardsticks(step: float, samples: int) -> list[Predictor]:
    """The yardsticks for which a series of this length and step is long enough."""
    seasons = {"(a day before)": round(DAY / step), "(a week before)": round(WEEK / step)}
    repeated = [SameTime(n, name) for name, n in seasons.items() if 1 < n <= samples // 2]
    return [LastValue(), WindowMean(), *repeated]


def forecasts_from(
    predictor: Predictor, series: Samples, moments: Iterable[int], horizon: int
) -> NDArray[np.float64]:
    """What it says at each of these moments, having seen all samples before; a row for each.

    >>> forecasts_from(LastValue(), np.arange(9.0), [4, 6], horizon=2)
    array([[3., 3.],
           [5., 5.]])
    """
    return np.stack([predictor.predict(series[:at], horizon).values for at in moments])
