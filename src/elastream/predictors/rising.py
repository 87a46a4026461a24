"""`rising`: `auto`, and a rise that has just begun goes on."""

from __future__ import annotations

import numpy as np

from elastream.predictors.auto import Auto
from elastream.predictors.base import Forecast, Samples
from elastream.predictors.linear import line_through

SEEN = 3
"""How many samples a rise shows in."""


class Rising(Auto):
    """The forecast of `auto`, but never below the line through the last three samples.

    `auto` trusts a trend once it has seen one come true. For what takes long to come, that is too
    late, and an executor that came in vain costs less than a batch that is late.

    >>> Rising().predict([10] * 50 + [20, 30], horizon=2).values.round()
    array([40., 50.])
    """

    name = "rising"

    def _extrapolate(self, history: Samples, horizon: int) -> Forecast:
        expected = super()._extrapolate(history, horizon)
        line = line_through(history[-SEEN:], horizon)
        return Forecast(np.maximum(expected.values, line), self.name, trusts=expected.trusts)
