import numpy as np
import pytest

from elastream.predictors.auto import Auto
from elastream.predictors.backtest import backtest
from elastream.predictors.basic import Basic
from elastream.predictors.family import LONGEST_SEASON, family, season_of
from elastream.workloads import TRACES

JUDGED_AFTER, APART = 300, 3
EXACT = 1e-6
"""An error of less than this part of the input is rounding, and cannot be compared with another."""


def mean_errors(values: np.ndarray, horizon: int) -> dict[str, tuple[float, float]]:
    """Of `auto` and of every member, over what both forecast, after 300 such forecasts."""
    own: dict[int, float] = {}
    members: dict[str, dict[int, float]] = {}
    for origin in range(20, len(values) - horizon, APART):
        history, truth = values[:origin], values[origin : origin + horizon]
        own[origin] = float(np.abs(Auto().predict(history, horizon).values - truth).mean())
        for name, made in family(history, 1, horizon).items():
            error = np.abs(np.maximum(made[-1], 0.0) - truth).mean()
            members.setdefault(name, {})[origin] = float(error)
    found = {}
    for name, errors in members.items():
        judged = sorted(errors)[JUDGED_AFTER // APART :]
        if judged:
            found[name] = tuple(
                float(np.mean([of[origin] for origin in judged])) for of in (own, errors)
            )
    return found


@pytest.mark.parametrize("name", ["spiky", "raw", "logs", "erratic", "periodic", "square"])
@pytest.mark.parametrize("horizon", [1, 6])
def test_it_is_never_much_worse_than_any_of_its_family(name: str, horizon: int) -> None:
    check_regret(TRACES[name]().values[:1000], horizon)


@pytest.mark.parametrize("season", [24, 60])
@pytest.mark.parametrize("horizon", [1, 6])
def test_it_is_never_much_worse_than_a_season_that_comes_to_light(
    season: int, horizon: int
) -> None:
    index = np.arange(900)
    rate = 200 + 800 * (index % season < 3)
    values = np.random.default_rng(1).poisson(rate).astype(float)
    assert {"season", "shifted season"} <= check_regret(values, horizon)


def check_regret(values: np.ndarray, horizon: int) -> set[str]:
    """At most 5 % worse than each member; returns the members."""
    errors = mean_errors(values, horizon)
    for member, (own, theirs) in errors.items():
        assert own <= max(1.05 * theirs, EXACT * values.mean()), member
    return set(errors)


@pytest.mark.parametrize("name", ["spiky", "dns", "progressive", "periodic"])
def test_it_is_better_than_basic_where_anything_can_be_foreseen(name: str) -> None:
    values = TRACES[name]().values[:1500]
    own = backtest(Auto(), values, horizon=6, history=300)
    assert own.mae < 0.9 * backtest(Basic(), values, horizon=6, history=300).mae


def test_it_says_whom_it_trusts() -> None:
    wave = 500 + 100 * np.sin(np.arange(412) * 2 * np.pi / 48)
    noise = np.random.default_rng(0).normal(0, 10, 400)
    forecast = Auto().predict(wave[:400] + noise, 12)
    assert sum(forecast.trusts.values()) == pytest.approx(1)
    assert max(forecast.trusts, key=lambda name: forecast.trusts[name]) in (
        "season",
        "shifted season",
    )
    np.testing.assert_allclose(forecast.values, wave[400:], atol=30)


def test_a_season_goes_on_beyond_the_steps_that_are_told_apart() -> None:
    wave = np.tile([10.0, 20.0, 40.0, 15.0, 5.0, 8.0, 9.0], 60)
    np.testing.assert_allclose(Auto().predict(wave, 140).values, wave[:140], rtol=1e-6)


@pytest.mark.parametrize("season", [7, 24, 288])
def test_a_season_is_found_under_noise_and_a_trend(season: int) -> None:
    index = np.arange(4 * season)
    noise = np.random.default_rng(0).normal(0, 5, len(index))
    values = 100 + 0.1 * index + 40 * np.sin(2 * np.pi * index / season) + noise
    found = season_of(values)
    assert found is not None
    assert abs(found - season) <= 1 + season // 50


def test_noise_has_no_season() -> None:
    assert season_of(np.random.default_rng(1).normal(100, 10, 2 * LONGEST_SEASON)) is None
