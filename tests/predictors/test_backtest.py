import numpy as np
import pytest

from elastream.errors import InvalidInputError
from elastream.predictors.backtest import backtest, rolling_origins
from elastream.predictors.basic import Basic
from elastream.predictors.linear import Lr


def test_each_forecast_sees_only_what_came_before() -> None:
    result = backtest(Basic(), np.arange(10), horizon=2, history=4)
    assert result.origins == (4, 6, 8)
    assert result.truth.tolist() == [[4, 5], [6, 7], [8, 9]]
    assert result.forecasts.tolist() == [[2, 3], [4, 5], [6, 7]]
    assert (result.model, result.mae, result.rmse, result.fallbacks) == ("basic", 2, 2, 0)


def test_a_perfect_model_has_no_error() -> None:
    result = backtest(Lr(), 5 + 3.0 * np.arange(60), horizon=6, history=12)
    assert (result.mae, result.rmse, result.mape) == pytest.approx((0, 0, 0), abs=1e-9)


def test_fallbacks_are_counted() -> None:
    class Broken(Lr):
        def _extrapolate(self, history: np.ndarray, horizon: int) -> np.ndarray:
            raise ZeroDivisionError("no slope")

    assert backtest(Broken(), np.arange(20), horizon=5, history=5).fallbacks == 3


def test_progress_is_told_after_each_forecast() -> None:
    ticks: list[None] = []
    result = backtest(
        Basic(), np.arange(100), horizon=3, history=10, after_each=lambda: ticks.append(None)
    )
    assert len(ticks) == len(result.origins) == 30


def test_a_few_origins_are_spread_over_the_series() -> None:
    assert rolling_origins(1_000, horizon=10, history=100, most=3) == (100, 540, 990)
    assert rolling_origins(120, horizon=10, history=100, most=50) == (100, 110)


@pytest.mark.parametrize(
    ("length", "history", "most", "message"),
    [
        (105, 100, None, "needs a series of at least 106, and this one has 105"),
        (200, 1, None, "a history of at least 2 samples, not 1"),
        (200, 100, 0, "at least 1 origin, not 0"),
    ],
)
def test_what_cannot_be_tested_is_refused(
    length: int, history: int, most: int | None, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        rolling_origins(length, 6, history, most)


def test_bands_are_learned_on_the_way() -> None:
    series = np.random.default_rng(0).normal(1000, 50, 2000)
    result = backtest(Basic(), series, horizon=2, history=20)
    assert result.coverage == pytest.approx(0.9, abs=0.03)
    assert result.pinball is not None
    # The true quantiles of the difference of two such samples lose 0.103 of its deviation.
    assert result.pinball == pytest.approx(0.103 * 50 * np.sqrt(2), rel=0.1)
    assert np.isnan(result.quantiles[0.95][0]).all()


def test_without_enough_forecasts_there_is_no_band() -> None:
    result = backtest(Basic(), np.arange(60), horizon=2, history=20)
    assert (result.coverage, result.pinball) == (None, None)
