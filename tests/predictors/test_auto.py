import numpy as np
import pytest

from elastream.predictors.auto import Auto
from elastream.predictors.backtest import backtest
from elastream.predictors.basic import Basic
from elastream.predictors.family import LONGEST_SEASON, family, season_of
from elastream.workloads import TRACES

JUDGED_AFTER = 300


def mean_errors(values: np.ndarray, horizon: int) -> tuple[float, dict[str, float]]:
    """Of `auto` and of every member that was there all along, after 300 forecasts."""
    own: list[float] = []
    members: dict[str, list[float]] = {}
    for origin in range(JUDGED_AFTER + 20, len(values) - horizon, 3):
        history, truth = values[:origin], values[origin : origin + horizon]
        own.append(float(np.abs(Auto().predict(history, horizon).values - truth).mean()))
        for name, made in family(history, 1, horizon).items():
            error = np.abs(np.maximum(made[-1], 0.0) - truth).mean()
            members.setdefault(name, []).append(float(error))
    return float(np.mean(own)), {
        name: float(np.mean(errors)) for name, errors in members.items() if len(errors) == len(own)
    }


@pytest.mark.parametrize("name", ["spiky", "raw", "logs", "erratic", "periodic", "square"])
@pytest.mark.parametrize("horizon", [1, 6])
def test_it_is_never_much_worse_than_the_best_of_its_family(name: str, horizon: int) -> None:
    values = TRACES[name]().values[:1000]
    own, members = mean_errors(values, horizon)
    assert own <= 1.05 * min(members.values()) + 1e-3 * values.mean(), members


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
