"""What every predictor in the catalogue promises, whatever its model."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.errors import InvalidInputError
from elastream.predictors import PREDICTORS, Forecast, Predictor
from elastream.predictors.base import repeat_last
from elastream.predictors.cards import CARDS
from elastream.predictors.fallback import WithFallback

SLOW = {"ann", "rf", "arima", "svr"}

WAVE = 500 + 200 * np.sin(np.arange(60) / 5) + 20 * np.cos(np.arange(60) * 1.7)

rates = st.one_of(st.integers(0, 10_000), st.floats(0, 1e9, allow_subnormal=False))
histories = st.lists(rates, min_size=2, max_size=40)


NETWORKS = pytest.mark.xdist_group("networks")
MODELS = [pytest.param(name, marks=[NETWORKS] * CARDS[name].trained) for name in PREDICTORS]


@pytest.fixture(scope="session", params=MODELS)
def make(request: pytest.FixtureRequest) -> Callable[[], Predictor]:
    """How each predictor of the catalogue is made."""
    if CARDS[request.param].trained:
        files: dict[str, Path] = request.getfixturevalue("trained_files")
        return partial(PREDICTORS[request.param], path=files[request.param])
    return PREDICTORS[request.param]


@pytest.fixture(scope="session")
def predictor(make: Callable[[], Predictor]) -> Predictor:
    """One of each for all tests: a forecast leaves no trace, and a network compiles for long."""
    return make()


def test_forecast_is_deterministic(make: Callable[[], Predictor]) -> None:
    first, again = make(), make()
    expected = first.predict(WAVE, 6).values
    np.testing.assert_array_equal(first.predict(WAVE, 6).values, expected)
    np.testing.assert_array_equal(again.predict(WAVE, 6).values, expected)


def test_forecast_has_the_name_of_its_model(predictor: Predictor) -> None:
    forecast = predictor.predict(WAVE, 6)
    assert (forecast.model, forecast.fallback) == (predictor.name, None)
    assert PREDICTORS[predictor.name] is type(predictor)


def test_history_is_left_as_it_was(predictor: Predictor) -> None:
    history = WAVE.copy()
    predictor.predict(history, 6)
    np.testing.assert_array_equal(history, WAVE)


def test_forecast_is_finite_and_not_negative(predictor: Predictor) -> None:
    examples = 8 if predictor.name in SLOW else 100

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None)
    @given(histories, st.integers(1, 30))
    def check(history: list[float], horizon: int) -> None:
        forecast = predictor.predict(history, horizon)
        assert forecast.values.shape == (horizon,)
        assert np.all(np.isfinite(forecast.values))
        assert np.all(forecast.values >= 0)
        assert np.isfinite(forecast.mean)

    check()


def test_the_largest_numbers_still_give_a_finite_forecast(predictor: Predictor) -> None:
    forecast = predictor.predict([1e308, 3e307, 1.7e308, 2e307] * 5, 20)
    assert np.all(np.isfinite(forecast.values))
    assert np.isfinite(forecast.mean)


@pytest.mark.parametrize("level", [0.0, 7.0, 1234.5])
def test_constant_history_gives_a_constant_forecast(predictor: Predictor, level: float) -> None:
    np.testing.assert_array_equal(predictor.predict([level] * 20, 6).values, [level] * 6)


def test_two_samples_are_enough(predictor: Predictor) -> None:
    forecast = predictor.predict([3, 5], 4)
    assert forecast.values.shape == (4,)
    if predictor.least_samples > 2:
        assert forecast.model == "basic"
        assert (
            forecast.fallback
            == f"{predictor.name} needs {predictor.least_samples} samples and has 2"
        )
        np.testing.assert_array_equal(forecast.values, [3, 5, 3, 5])


def test_longest_horizon(predictor: Predictor) -> None:
    assert np.all(np.isfinite(predictor.predict(WAVE[:12], 10_000).values))


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([], "the history needs at least 2 samples, and has 0"),
        ([1], "the history needs at least 2 samples, and has 1"),
        ([1, float("nan"), 2], r"history\[1\] is nan: not finite"),
        ([1, 2, float("inf")], r"history\[2\] is inf: not finite"),
        ([-1, 2, 3], r"history\[0\] is -1.0: negative"),
        ([[1, 2], [3, 4]], "the history must be one list, and has 2 dimensions"),
        (["many", 2], "the history must be numbers"),
    ],
)
def test_bad_history_is_refused(predictor: Predictor, history: list[float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        predictor.predict(history, 6)


@pytest.mark.parametrize("horizon", [0, -1, 10_001])
def test_horizon_out_of_range_is_refused(predictor: Predictor, horizon: int) -> None:
    with pytest.raises(InvalidInputError, match=f"the horizon must be 1 to 10000, not {horizon}"):
        predictor.predict([1, 2, 3], horizon)


@pytest.mark.parametrize("horizon", [1.5, True, "6", None])
def test_horizon_that_is_no_whole_number_is_refused(predictor: Predictor, horizon: object) -> None:
    with pytest.raises(InvalidInputError, match="the horizon must be a whole number"):
        predictor.predict([1, 2, 3], horizon)  # type: ignore[arg-type]


def test_model_that_answers_is_left_alone(predictor: Predictor) -> None:
    forecast = WithFallback(predictor, timeout=30).predict(WAVE, 6)
    assert (forecast.model, forecast.fallback) == (predictor.name, None)


def test_model_that_fails_falls_back_and_says_so(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(history: np.ndarray, horizon: int) -> np.ndarray:
        raise RuntimeError("no luck today")

    monkeypatch.setattr(predictor, "_extrapolate", fail)
    forecast = WithFallback(predictor, timeout=30).predict(WAVE, 6)
    assert_basic(forecast, f"{predictor.name} failed: no luck today")


def test_model_that_is_too_slow_falls_back_and_says_so(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()

    def wait(history: np.ndarray, horizon: int) -> np.ndarray:
        may_end.wait(30)
        return np.zeros(horizon)

    monkeypatch.setattr(predictor, "_extrapolate", wait)
    try:
        forecast = WithFallback(predictor, timeout=0.01).predict(WAVE, 6)
    finally:
        may_end.set()
    assert_basic(forecast, f"{predictor.name} took longer than 0.01 s")


def assert_basic(forecast: Forecast, reason: str) -> None:
    assert (forecast.model, forecast.fallback) == ("basic", reason)
    np.testing.assert_array_equal(forecast.values, repeat_last(WAVE, 6))
