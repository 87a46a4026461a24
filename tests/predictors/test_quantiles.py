import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.errors import InvalidInputError
from elastream.predictors import PREDICTORS
from elastream.predictors.accuracy import coverage
from elastream.predictors.base import Forecast
from elastream.predictors.quantiles import (
    FURTHEST,
    LEAST_ERRORS,
    RATE,
    ErrorBands,
    shares_below,
)
from elastream.workloads import TRACES


def banded(model: str, values: np.ndarray, horizon: int) -> tuple[np.ndarray, int]:
    """For each step ahead the share of truths in the 90 % band, and of how many forecasts."""
    predictor, bands, inside = PREDICTORS[model](), ErrorBands(), []
    for origin in range(20, len(values) - horizon):
        made = bands.around(predictor.predict(values[max(origin - 100, 0) : origin], horizon))
        if made.quantiles:
            ladder, levels = np.array(list(made.quantiles.values())), np.array([*made.quantiles])
            below = [
                shares_below(float(values[origin + step]), ladder[:, step], levels)
                for step in range(horizon)
            ]
            inside.append([shares[2] - shares[0] for shares in below])
        bands.settle(float(values[origin]))
    return np.mean(inside, axis=0), len(inside)


@pytest.mark.parametrize(
    "name",
    ["spiky", "raw", "diurnal", "dns", "logs", "progressive", "erratic", "periodic", "fluctuating"],
)
@pytest.mark.parametrize("model", ["basic", "lr"])
def test_a_90_percent_band_holds_90_percent(name: str, model: str) -> None:
    shares, count = banded(model, TRACES[name]().values[:1300], horizon=6)
    assert count >= 1000
    assert shares.min() >= 0.87
    assert shares.max() <= 0.93


@pytest.mark.parametrize("name", ["step", "square", "ramp"])
@pytest.mark.parametrize("model", ["basic", "lr"])
def test_it_does_so_where_errors_are_nothing_but_rounding(name: str, model: str) -> None:
    values = np.tile(TRACES[name]().values, 3)[:1500]
    shares, count = banded(model, values, horizon=6)
    assert count >= 1000
    assert shares.min() >= 0.87
    assert shares.max() <= 0.93


def test_a_forecast_that_is_right_up_to_rounding_is_in_its_band() -> None:
    values = 1000 + 0.1 * np.arange(200)
    bands, held = ErrorBands(), []
    for now, ahead in pairwise(values):
        bands.settle(float(now))
        made = bands.around(Forecast(np.array([ahead + 1e-12 * (-1) ** len(held)]), "exact"))
        if made.quantiles:
            held.append(coverage([ahead], made.quantiles[0.05], made.quantiles[0.95]))
    assert held
    assert min(held) == 1.0


def test_a_band_follows_when_errors_grow() -> None:
    random = np.random.default_rng(0)
    values = np.concatenate([random.normal(1000, 5, 600), random.normal(1000, 50, 600)])
    shares, _ = banded("basic", values, horizon=1)
    assert 0.87 <= shares[0] <= 0.93


def distances(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Of every level: how far the share of truths below it is from it; and the promised bound."""
    bands, below = ErrorBands(), []
    levels = np.array(bands.levels)
    for now, ahead in pairwise(values):
        bands.settle(float(now))
        made = bands.around(Forecast(np.array([now]), "last value"))
        if made.quantiles:
            ladder = np.array([of[0] for of in made.quantiles.values()])
            below.append(shares_below(float(ahead), ladder, levels))
    return np.abs(np.mean(below, axis=0) - levels), (1 + FURTHEST) / (RATE * len(below))


@pytest.mark.parametrize("seed", range(3))
def test_every_level_is_met_as_closely_as_promised(seed: int) -> None:
    random = np.random.default_rng(seed)
    calm, wild = random.normal(1000, 5, 1000), 1000 * random.pareto(1.5, 1000)
    found, promised = distances(np.concatenate([calm, wild, calm]))
    assert found.max() <= promised


def test_errors_that_keep_outgrowing_all_before_are_beyond_the_promise() -> None:
    found, promised = distances(2.0 ** np.arange(300))
    assert found.max() > promised


def test_there_is_no_band_before_enough_errors_are_known() -> None:
    bands = ErrorBands()
    banded_after = None
    for number in range(100):
        made = bands.around(Forecast(np.array([10.0]), "mean"))
        if made.quantiles and banded_after is None:
            banded_after = number
        bands.settle(10.0 + number % 3)
    assert banded_after == LEAST_ERRORS


def test_a_longer_horizon_keeps_its_band() -> None:
    """As when the lead time turns out to be longer than it was."""
    bands = ErrorBands()
    for sample in np.random.default_rng(0).normal(100, 10, 60):
        bands.around(Forecast(np.array([100.0, 110.0]), "mean"))
        bands.settle(sample)
    known = bands.around(Forecast(np.array([100.0, 110.0]), "mean"))
    longer = bands.around(Forecast(np.array([100.0, 110.0, 300.0, 0.0]), "mean"))
    assert longer.quantiles.keys() == known.quantiles.keys()
    for level, values in known.quantiles.items():
        offset = values[1] - 110
        told = [*values, 300 + offset, max(offset, 0.0)]
        assert longer.quantiles[level].tolist() == pytest.approx(told)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 1e12), min_size=40, max_size=80), st.integers(1, 70))
def test_quantiles_are_ordered_and_never_negative(series: list[float], horizon: int) -> None:
    bands = ErrorBands()
    for sample in series:
        made = bands.around(Forecast(np.full(horizon, sample), "last"))
        bands.settle(sample)
        ladder = np.array(list(made.quantiles.values()))
        if len(ladder):
            assert ladder.shape == (4, horizon)
            assert np.all(np.diff(ladder, axis=0) >= 0)
            assert np.all(ladder >= 0)
            assert np.all(np.isfinite(ladder))


@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_a_level_that_is_no_chance_is_refused(level: float) -> None:
    with pytest.raises(InvalidInputError, match="above 0 and below 1"):
        ErrorBands([level])
