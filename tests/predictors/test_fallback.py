import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from elastream.errors import InvalidInputError
from elastream.predictors.base import Predictor, Samples
from elastream.predictors.basic import Basic
from elastream.predictors.fallback import WithFallback


class Gated(Predictor):
    """Answers when its gate opens."""

    name = "gated"

    def __init__(self) -> None:
        self.gate = threading.Event()

    def _extrapolate(self, history: Samples, horizon: int) -> Samples:
        self.gate.wait(30)
        return np.full(horizon, 42.0)


def test_a_model_that_comes_back_is_used_again() -> None:
    model = Gated()
    with ThreadPoolExecutor(1) as pool:
        guarded = WithFallback(model, timeout=0.02, executor=pool)
        assert guarded.predict([1, 2, 3], 2).fallback == "gated took longer than 0.02 s"
        assert guarded.predict([1, 2, 3], 2).model == "basic"
        model.gate.set()
        patient = WithFallback(model, timeout=30, executor=pool)
        assert patient.predict([1, 2, 3], 2).values.tolist() == [42, 42]


def test_a_bad_history_is_refused_and_not_covered_up() -> None:
    with pytest.raises(InvalidInputError, match=r"history\[1\] is -2.0: negative"):
        WithFallback(Basic(), timeout=1).predict([1, -2], 1)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_time_out_that_makes_no_sense_is_refused(timeout: float) -> None:
    with pytest.raises(InvalidInputError, match="the time-out must be more than 0 seconds"):
        WithFallback(Basic(), timeout)
