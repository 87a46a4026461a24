"""`basic`: the next interval behaves as the last one did (PA-SPS section 3.2)."""

from __future__ import annotations

from elastream.predictors.base import Predictor, Samples, repeat_last


class Basic(Predictor):
    """Repeat the last samples.

    >>> Basic().predict([1, 2, 3, 4], horizon=2).values
    array([3., 4.])
    """

    name = "basic"

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        return repeat_last(history, horizon)
