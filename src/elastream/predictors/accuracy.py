"""How far forecasts are from the truth.

MAE and RMSE are in events per sample (BGElasor section 5); MAPE is a share of the truth, the error
estimate of PA-SPS section 4.1.3. Quantiles are judged by how often the truth is between them, and
by the pinball loss, which no forecast makes smaller than the true quantile does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.errors import InvalidInputError

ROUNDING = 1e-9
"""Of a sample: what differs by less is equal."""


def mae(truth: ArrayLike, forecast: ArrayLike) -> float:
    """Mean absolute error: Σ|x - x̂| / n.

    >>> mae([10, 20], [12, 14])
    4.0
    """
    return float(np.mean(np.abs(_errors(truth, forecast))))


def rmse(truth: ArrayLike, forecast: ArrayLike) -> float:
    """Root of the mean squared error: √(Σ(x - x̂)² / n).

    >>> rmse([10, 20], [13, 17])
    3.0
    """
    return float(np.sqrt(np.mean(_errors(truth, forecast) ** 2)))


def mape(truth: ArrayLike, forecast: ArrayLike) -> float:
    """Mean absolute percentage error: 100 · Σ|x - x̂| / |x| / n, over the samples that are not 0.

    A share of nothing is not defined: samples of 0 are left out, and where all are 0 so is MAPE.

    >>> mape([10, 20, 0], [12, 14, 5])
    25.0
    >>> mape([0, 0], [1, 2])
    nan
    """
    errors, actual = _errors(truth, forecast), np.asarray(truth, dtype=np.float64)
    counted = actual != 0
    if not counted.any():
        return float("nan")
    return float(100 * np.mean(np.abs(errors[counted] / actual[counted])))


def coverage(truth: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """The share of samples that are between two quantiles, or on one of them, up to rounding.

    >>> coverage([10, 20, 30, 40], [5, 15, 35, 35], [15, 25, 45, 45])
    0.75
    """
    rounding = ROUNDING * np.maximum(np.abs(np.asarray(truth, dtype=np.float64)), 1.0)
    held = (_errors(truth, low) >= -rounding) & (_errors(truth, high) <= rounding)
    return float(np.mean(held))


def pinball(truth: ArrayLike, quantile: ArrayLike, level: float) -> float:
    """Mean pinball loss: p·(x - q) where the truth is above the quantile, else (1-p)·(q - x).

    >>> pinball([10, 20], [15, 15], 0.9)
    2.5
    """
    errors = _errors(truth, quantile)
    return float(np.mean(np.maximum(level * errors, (level - 1) * errors)))


def _errors(truth: ArrayLike, forecast: ArrayLike) -> NDArray[np.float64]:
    actual, expected = np.asarray(truth, np.float64), np.asarray(forecast, np.float64)
    if actual.shape != expected.shape or actual.size == 0:
        raise InvalidInputError(
            f"an error needs as many forecasts as samples, at least one of each: "
            f"there are {expected.shape} and {actual.shape}"
        )
    return actual - expected
