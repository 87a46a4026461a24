"""`arima`: autoregression, differences and a moving average (BGElasor section 5).

φ(B)(1 - B)^d (x_t - μ) = θ(B) ε_t, fitted by maximum likelihood. statsmodels does it: it is the
reference implementation in Python, and its answers agree with those of R. BGElasor does not give
its order; (1, 1, 1) is the usual first choice for a rate that wanders.
"""

from __future__ import annotations

import numpy as np

from elastream.errors import InvalidInputError
from elastream.predictors.base import Predictor, Samples
from elastream.predictors.fitting import fitting, library_model
from elastream.predictors.learned import LAST_SAMPLES


class Arima(Predictor):
    """ARIMA of one order (p, d, q), fitted to the last `window` samples."""

    name = "arima"
    least_samples = 10

    def __init__(self, *, p: int = 1, d: int = 1, q: int = 1, window: int = LAST_SAMPLES) -> None:
        if min(p, d, q) < 0:
            raise InvalidInputError(f"arima: the order ({p}, {d}, {q}) must not be negative")
        if window < self.least_samples:
            raise InvalidInputError(
                f"arima: window must be at least {self.least_samples}, not {window}"
            )
        self._new_model = library_model("statsmodels.tsa.arima.model:ARIMA", self.name, "forecast")
        self.order = (p, d, q)
        self.window = window

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        recent = history[-self.window :]
        # The optimiser works in units of the samples: far from one it stops too early.
        unit = float(np.abs(recent).max()) or 1.0
        # Start values that are not stationary, or a search that stops at its last step, still give
        # a forecast, and the backtest measures how good it is.
        with fitting():
            fitted = self._new_model(recent / unit, order=self.order).fit(cov_type="none")
            return np.asarray(fitted.forecast(horizon), dtype=np.float64) * unit
