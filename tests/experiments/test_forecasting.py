"""The models of BGElasor table 1, at sizes that take moments."""

import numpy as np
import pytest

from elastream.errors import InvalidInputError, MissingExtraError
from elastream.experiments import EXPERIMENTS, bgelasor_1
from elastream.experiments.base import Inputs
from elastream.experiments.forecasting.arima import CarriedArima
from elastream.experiments.forecasting.loads import ByLoad
from elastream.experiments.forecasting.recurrent import Network
from elastream.experiments.forecasting.svr import SvrPerStep
from elastream.experiments.forecasting.task import Task
from elastream.experiments.report import write_outcome, write_report
from elastream.predictors.accuracy import rmse
from elastream.predictors.cards import CARDS, Card
from elastream.workloads.traces import evenly

pytestmark = pytest.mark.xdist_group("networks")

TINY = {
    "arima": CarriedArima(((1, 0, 1), (1, 1, 1))),
    "svr": SvrPerStep(lags=(6,), widths=(1.0,), tuned_on_every=1),
    "gru": Network("gru", epochs=2, window=12, hidden=4),
}


def wave(count=360):
    noise = np.random.default_rng(0).standard_normal(count)
    return 1000 + 300 * np.sin(np.arange(count) / 8) + 5 * noise


@pytest.mark.parametrize("name", TINY)
def test_a_model_forecasts_from_every_moment_of_the_test_part(name):
    task, advanced = Task(wave(), 240, 300), []
    found = TINY[name].forecasts(task, advanced.append)
    assert found.values.shape == task.truth(task.test).shape
    assert np.isfinite(found.values).all()
    assert sum(advanced) == TINY[name].steps(task)
    assert found.choice


@pytest.mark.parametrize("name", ["arima", "svr"])
def test_the_classical_models_are_better_than_the_last_samples_again(name):
    task = Task(wave(), 240, 300)
    truth, again = task.truth(task.test), task.windows(task.horizon, task.test)
    found = TINY[name].forecasts(task, lambda steps: None).values
    assert rmse(truth, found) < 0.8 * rmse(truth, again)


def test_arima_without_differences_forecasts_around_the_mean():
    noise = np.random.default_rng(1).standard_normal(360)
    found = CarriedArima(((1, 0, 0),)).forecasts(Task(500 + noise, 240, 300), lambda steps: None)
    assert found.values.mean() == pytest.approx(500, abs=1)


def test_a_series_that_is_too_short_is_refused():
    with pytest.raises(InvalidInputError, match="every part needs at least 12"):
        Task(wave(60), 40, 50)
    with pytest.raises(InvalidInputError, match="too few for a window of 288"):
        Task(wave(), 240, 300).windows(288, np.array([300]))


def test_errors_are_shares_of_the_mean():
    trace = evenly(wave(), 300.0)
    doubled = evenly(2 * wave(), 300.0)
    measured = ByLoad(TINY["svr"], {"stable": trace, "periodic": doubled})
    values = measured.measure(lambda steps: None).values
    assert values["stable_rmse"] == pytest.approx(values["periodic_rmse"])
    assert 0 < values["stable_mae"] < 20


def test_the_experiment_writes_its_table_and_figures(monkeypatch, tmp_path):
    days = 360 * 300 / 86_400
    monkeypatch.setattr(bgelasor_1, "DAYS", days)
    monkeypatch.setattr(
        bgelasor_1, "_forecaster", lambda name, seed: TINY[name if name in TINY else "gru"]
    )
    experiment, inputs, advanced = EXPERIMENTS["bgelasor-1"](), Inputs(), []
    outcome = experiment.run(inputs, advanced.append)
    assert sum(advanced) == experiment.steps(inputs)
    write_outcome(outcome, tmp_path / experiment.name)
    report = write_report([outcome], tmp_path).read_text()
    assert "<small>1.252</small>" in report
    assert "| BiGRU | 0.101 / " in (tmp_path / "bgelasor-1" / "table.md").read_text()
    assert (tmp_path / "bgelasor-1" / "figure.png").stat().st_size > 10_000


def test_without_the_extra_it_says_so_before_anything_runs(monkeypatch):
    missing = Card("BGElasor", "deep", "no_such_library", trained=True)
    monkeypatch.setitem(CARDS, "lstm", missing)
    with pytest.raises(MissingExtraError, match=r"'lstm' needs an extra.*elastream\[deep\]"):
        EXPERIMENTS["bgelasor-1"]().steps(Inputs())
