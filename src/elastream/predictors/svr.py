"""`svr`: support vector regression of a sample on the samples before it (BGElasor section 5).

As for BGElasor's networks, the input is the window (v_{t-b}, …, v_t), min-max scaled, and several
steps ahead are forecast one by one, each from the ones before it.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from elastream.errors import InvalidInputError
from elastream.predictors.base import Predictor, Samples
from elastream.predictors.fitting import fitting, library_model
from elastream.predictors.learned import LAST_SAMPLES


class Svr(Predictor):
    """scikit-learn's SVR, with its defaults, on the last `lags` samples.

    A history of fewer than `2 * lags` samples is split evenly: half of it makes a window, the other
    half makes the examples.
    """

    name = "svr"
    least_samples = 4

    def __init__(self, *, lags: int = 12, window: int = LAST_SAMPLES) -> None:
        if lags < 1:
            raise InvalidInputError(f"svr: lags must be at least 1, not {lags}")
        if window < self.least_samples:
            raise InvalidInputError(
                f"svr: window must be at least {self.least_samples}, not {window}"
            )
        self._new_machine = library_model("sklearn.svm:SVR", self.name, "forecast")
        self.lags = lags
        self.window = window

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        recent = history[-self.window :]
        low, spread = float(recent.min()), float(np.ptp(recent))
        if spread == 0:
            return np.full(horizon, recent[-1])
        scaled = (recent - low) / spread
        lags = min(self.lags, len(scaled) // 2)
        examples = sliding_window_view(scaled, lags + 1)
        series = np.concatenate([scaled, np.empty(horizon)])
        with fitting():
            machine = self._new_machine().fit(examples[:, :-1], examples[:, -1])
            for step in range(len(scaled), len(series)):
                series[step] = machine.predict(series[np.newaxis, step - lags : step])[0]
        return low + spread * series[len(scaled) :]
