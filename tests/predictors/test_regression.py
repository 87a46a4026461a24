from collections.abc import Callable

import numpy as np
import pytest

from elastream.errors import InvalidInputError
from elastream.predictors.regression import Regression

Curve = Callable[[np.ndarray], np.ndarray]


@pytest.mark.parametrize(
    "curve",
    [
        pytest.param(lambda t: 100 + 7 * t, id="linear"),
        pytest.param(lambda t: 100 + 60 * np.log(t), id="logarithmic"),
        pytest.param(lambda t: 100 * np.exp(0.1 * t), id="exponential, rising"),
        pytest.param(lambda t: 900 * np.exp(-0.2 * t), id="exponential, falling"),
    ],
)
def test_the_right_one_of_three_is_found(curve: Curve) -> None:
    past, ahead = np.arange(1.0, 21), np.arange(21.0, 27)
    np.testing.assert_allclose(Regression().predict(curve(past), 6).values, curve(ahead))


def test_only_the_last_window_counts() -> None:
    history = [900, 3, 500, 10, 20, 30]
    np.testing.assert_allclose(Regression(window=3).predict(history, 2).values, [40, 50])


def test_a_sample_of_zero_rules_the_exponential_out() -> None:
    forecast = Regression().predict([0, 10, 20], 2)
    np.testing.assert_allclose(forecast.values, [30, 40])


def test_an_exponential_that_overflows_lets_basic_stand_in() -> None:
    forecast = Regression().predict(2.0 ** np.arange(20), 10_000)
    assert (forecast.model, forecast.fallback) == ("basic", "regression gave no finite forecast")


def test_a_window_of_one_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="regression: window must be at least 2, not 1"):
        Regression(window=1)
