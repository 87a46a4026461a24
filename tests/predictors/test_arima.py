import sys

import numpy as np
import pytest

from elastream.errors import InvalidInputError, MissingExtraError
from elastream.predictors.arima import Arima

# `lh`, the hormone series that comes with R, and the example of its manual page of `arima`.
LH = """2.4 2.4 2.4 2.2 2.1 1.5 2.3 2.3 2.5 2.0 1.9 1.7 2.2 1.8 3.2 3.2 2.7 2.2 2.2 1.9 1.9 1.8 2.7
3.0 2.3 2.0 2.0 2.9 2.9 2.7 2.7 2.3 2.6 2.4 1.8 1.7 1.5 1.4 2.1 3.3 3.5 3.5 3.1 2.6 2.1 3.4 3.0
2.9"""
R_AR1, R_MEAN = 0.5739, 2.4133


@pytest.mark.parametrize("unit", [1, 1_000_000])
def test_agrees_with_the_published_example_of_r(unit: int) -> None:
    """arima(lh, order = c(1, 0, 0)) prints ar1 = 0.5739 and intercept = 2.4133."""
    history = np.array(LH.split(), dtype=float)
    expected = R_MEAN + R_AR1 ** np.arange(1, 7) * (history[-1] - R_MEAN)
    forecast = Arima(p=1, d=0, q=0).predict(history * unit, 6)
    np.testing.assert_allclose(forecast.values / unit, expected, atol=5e-4)


def test_a_short_history_is_not_enough() -> None:
    forecast = Arima().predict([1, 2, 3, 4, 5], 2)
    assert forecast.fallback == "arima needs 10 samples and has 5"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"p": -1}, r"arima: the order \(-1, 1, 1\) must not be negative"),
        ({"window": 9}, "arima: window must be at least 10, not 9"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Arima(**wrong)


def test_without_statsmodels_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.tsa.arima.model", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elastream\[forecast\]'"):
        Arima()
