"""`regression`: the best of a line, a logarithm and an exponential (AUTOSCALE+, equation 3).

Over the last window, with t = 1 … n, three functions compete: a + b·t, a + b·ln t and a·e^(b·t).
Each is fitted by least squares, the exponential as a line through ln x; the one with the smallest
residual sum of squares, in events and not in logarithms, forecasts t = n + 1, n + 2, …
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from elastream.errors import InvalidInputError
from elastream.predictors.base import Predictor, Samples
from elastream.predictors.linear import fit_line

Curve = Callable[[Samples], Samples]


class Regression(Predictor):
    """The best of three curves through the last `window` samples.

    >>> Regression().predict([2, 4, 8, 16], horizon=2).values.round(6)
    array([32., 64.])
    """

    name = "regression"

    def __init__(self, *, window: int = 100) -> None:
        if window < 2:
            raise InvalidInputError(f"regression: window must be at least 2, not {window}")
        self.window = window

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        recent = history[-self.window :]
        count = len(recent)
        past = np.arange(1, count + 1, dtype=np.float64)
        ahead = np.arange(count + 1, count + horizon + 1, dtype=np.float64)
        best = min(candidates(past, recent), key=lambda curve: _misfit(curve(past), recent))
        return best(ahead)


def candidates(t: Samples, x: Samples) -> Iterator[Curve]:
    """The fitted line, logarithm and, where every sample is positive, exponential."""
    intercept, slope = fit_line(t, x)
    yield lambda at: intercept + slope * at
    level, gain = fit_line(np.log(t), x)
    yield lambda at: level + gain * np.log(at)
    if np.all(x > 0):
        scale, rate = fit_line(t, np.log(x))
        yield lambda at: np.exp(scale + rate * at)


def _misfit(fitted: Samples, samples: Samples) -> float:
    return float(np.sum((fitted - samples) ** 2))
