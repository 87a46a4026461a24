"""How far off a model may be: quantiles around any model's forecasts, from its own errors.

Adaptive conformal inference (Gibbs and Candès 2021), for every level and every step ahead by
itself. A quantile at level p is the forecast plus a quantile of the errors of that step, which
count the less, the older they are. Which quantile, a, is learned: when the truth is above it, a
rises by γ·p, else it falls by γ·(1-p). As long as a reaches neither of its limits, the share of
truths below is, after T forecasts, within (1 + `FURTHEST`) / (γ·T) of p. Only errors that keep
outgrowing all those before, by more than the limits allow for, take it there and keep it there.
A truth that equals a quantile, up to rounding, is partly below it; see `shares_below`. Steps whose
errors are not known, or not told apart, are taken to be as far off as the last one that is known:
the errors of a step become known later than those of the steps before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from elastream.errors import InvalidInputError
from elastream.predictors.accuracy import ROUNDING
from elastream.predictors.base import Forecast, Samples

LOW, HIGH = 0.05, 0.95
"""The ends of the 90 % band."""
LEVELS = (LOW, 0.5, HIGH, 0.99)
"""The quantiles that forecasts carry."""
LEAST_ERRORS = 20
"""How many errors of a step must be known before they count."""
STEPS = 60
"""How many steps ahead are told apart."""
WINDOW = 300
"""How many errors of each step count."""
RATE = 0.02
"""γ: how fast the levels move."""
FURTHEST = 0.2
"""How far a may go beyond 0 and 1, if even the largest known errors are too small."""
MEMORY = 0.985
"""The weight of an error, relative to that of the next newer one. If errors were divided by the
size of those before, as is often done, the first steps of a rise would outweigh all others."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A forecast whose steps have not all come true."""

    values: Samples
    quantiles: Samples
    """One row per level; NaN where there was none."""


_NOTHING = _Pending(np.empty(0), np.empty((0, 0)))
_WEIGHTS = MEMORY ** np.arange(WINDOW)[::-1]
"""Of errors, oldest first."""


class ErrorBands:
    """Learns from every sample how far off its forecasts were.

    >>> bands = ErrorBands(levels=(0.05, 0.95))
    >>> for sample in np.random.default_rng(0).normal(100, 10, 500):
    ...     bands.settle(sample)
    ...     made = bands.around(Forecast(np.array([100.0]), "mean"))
    >>> {level: round(float(values[0]), -1) for level, values in made.quantiles.items()}
    {0.05: 80.0, 0.95: 120.0}
    """

    def __init__(self, levels: Sequence[float] = LEVELS) -> None:
        if not all(0 < level < 1 for level in levels):
            raise InvalidInputError(f"levels {levels}: each must be above 0 and below 1")
        self.levels = tuple(sorted(levels))
        self._wanted = np.array(self.levels)
        self._pending: deque[_Pending] = deque([_NOTHING], maxlen=STEPS)
        """By how many samples have come since each was made."""
        self._errors: list[deque[float]] = []
        """Of each step, oldest first."""
        self._learned: list[Samples] = []
        """Of each step, a for every level."""

    def around(self, forecast: Forecast) -> Forecast:
        """The forecast with its quantiles; it is remembered until all its steps have come true."""
        steps = min(len(forecast.values), STEPS)
        while len(self._errors) < steps:
            self._errors.append(deque(maxlen=WINDOW))
            self._learned.append(np.array(self.levels))
        values = forecast.values[:steps]
        offsets = np.stack([self._offsets(step) for step in range(steps)], axis=1)
        quantiles = np.maximum(values + np.maximum.accumulate(offsets, axis=0), 0.0)
        self._pending[0] = _Pending(values, quantiles)
        known = sum(len(errors) >= LEAST_ERRORS for errors in self._errors[:steps])
        if not known:
            return forecast
        last = quantiles[:, known - 1 : known] - values[known - 1]
        further = np.maximum(forecast.values[known:] + last, 0.0)
        told = np.concatenate([quantiles[:, :known], further], axis=1)
        return replace(forecast, quantiles=dict(zip(self.levels, told, strict=True)))

    def settle(self, sample: float) -> None:
        """A sample has come: each forecast that waits is one step older, and learns from it."""
        for step, made in enumerate(self._pending):
            if step < len(made.values):
                self._learn(step, made, sample)
        self._pending.appendleft(_NOTHING)

    def _learn(self, step: int, made: _Pending, sample: float) -> None:
        self._errors[step].append(sample - float(made.values[step]))
        known = made.quantiles[:, step]
        if not np.isnan(known).any():
            below = shares_below(sample, known, self._wanted)
            learned = self._learned[step] + RATE * (self._wanted - below)
            self._learned[step] = np.clip(learned, -FURTHEST, 1 + FURTHEST)

    def _offsets(self, step: int) -> Samples:
        """The quantile of the errors at a, for every level."""
        count = len(self._errors[step])
        if count < LEAST_ERRORS:
            return np.full(len(self.levels), np.nan)
        unsorted, learned = np.array(self._errors[step]), self._learned[step]
        order = np.argsort(unsorted)
        errors, weights = unsorted[order], _WEIGHTS[-count:][order]
        shares = (np.cumsum(weights) - weights / 2) / weights.sum()
        offsets: Samples = np.interp(learned, shares, errors)
        # Beyond the known errors, a says how much further to go.
        beyond = np.maximum(learned - 1, 0.0) - np.maximum(-learned, 0.0)
        offsets += 2 * beyond * (errors[-1] - errors[0])
        return offsets


def shares_below(truth: float, quantiles: Samples, levels: Samples) -> Samples:
    """How much of a truth lies below each of the ascending quantiles: 1, 0, or a part in a tie.

    Where several quantiles coincide, a truth that equals them may be of any level among them: it
    counts as if spread evenly over those (the randomised probability integral transform: Czado,
    Gneiting and Held, Predictive model assessment for count data, 2009, without the dice). So a
    forecast that is always right, with a band of no width, is below its 95 % quantile 95 % of the
    time, and there is nothing to learn from it.

    >>> levels = np.array([0.05, 0.5, 0.95])
    >>> shares_below(7.0, np.array([5.0, 6.0, 9.0]), levels)
    array([0., 0., 1.])
    >>> shares_below(5.0, np.array([5.0, 5.0, 5.0]), levels)
    array([0.05, 0.5 , 0.95])
    """
    rounding = ROUNDING * max(abs(truth), 1.0)
    smaller, larger = quantiles < truth - rounding, quantiles > truth + rounding
    lowest = float(levels[smaller].max(initial=0.0))
    highest = float(levels[larger].min(initial=1.0))
    tied: Samples = (levels - lowest) / max(highest - lowest, ROUNDING)
    return np.where(smaller, 0.0, np.where(larger, 1.0, tied))
