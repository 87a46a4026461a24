"""`ann` and `rf`: scikit-learn's regressors on the time index, with its defaults (PA-SPS).

As in the published code, the only feature is the index of the sample, and the network sees samples
in thousands and may take 1,000 iterations; stopping there is not worth a warning. An old sample
says little about the next one and costs as much as a new one, so only the last `window` samples are
fitted.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from elastream.errors import InvalidInputError
from elastream.predictors.base import Predictor, Samples
from elastream.predictors.fitting import fitting, library_model

LAST_SAMPLES = 1_000
NETWORK_UNIT = 1_000.0


class _OnTimeIndex(Predictor):
    """A regressor of samples on their index."""

    _regressor: ClassVar[str]

    def __init__(self, *, seed: int = 0, window: int = LAST_SAMPLES) -> None:
        if window < 2:
            raise InvalidInputError(f"{self.name}: window must be at least 2, not {window}")
        self._new_regressor = library_model(self._regressor, self.name, "forecast")
        self.seed = seed
        self.window = window

    def _fit_and_extend(self, regressor: Any, samples: Samples, horizon: int) -> Samples:
        index = np.arange(len(samples) + horizon, dtype=np.float64).reshape(-1, 1)
        try:
            with fitting():
                regressor.fit(index[: len(samples)], samples)
                return np.asarray(regressor.predict(index[len(samples) :]), dtype=np.float64)
        except ValueError as error:
            # The samples are valid: scikit-learn can only refuse numbers that grew too large.
            raise ArithmeticError(str(error)) from error


class Ann(_OnTimeIndex):
    """A multi-layer perceptron."""

    name = "ann"
    _regressor = "sklearn.neural_network:MLPRegressor"

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        network = self._new_regressor(max_iter=1_000, random_state=self.seed)
        thousands = history[-self.window :] / NETWORK_UNIT
        return self._fit_and_extend(network, thousands, horizon) * NETWORK_UNIT


class Rf(_OnTimeIndex):
    """A random forest: beyond the last sample every tree answers with its last leaf."""

    name = "rf"
    _regressor = "sklearn.ensemble:RandomForestRegressor"

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        forest = self._new_regressor(random_state=self.seed)
        return self._fit_and_extend(forest, history[-self.window :], horizon)
