from concurrent.futures import Executor, Future

import numpy as np
import pytest

from elastream.predictors.recurrent import Gru
from elastream.predictors.recurrent.model_file import load
from elastream.predictors.recurrent.retraining import Retraining
from elastream.predictors.recurrent.self_training import SelfTraining

WAVE = 5_000 + 4_000 * np.sin(np.arange(240) / 5)


class AtOnce(Executor):
    """Does what is submitted before it comes back."""

    def submit(self, function, /, *arguments, **options):
        done = Future()
        try:
            done.set_result(function(*arguments, **options))
        except Exception as error:
            done.set_exception(error)
        return done


class Clock:
    time = 0.0

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def training(trained_files, tmp_path, clock):
    def made(recorded):
        schedule = Retraining(every=60, least_samples=200)
        return SelfTraining(
            Gru(trained_files["gru"]), schedule, recorded, clock, tmp_path / "new.gru", AtOnce()
        )

    return made


def test_a_better_model_takes_over_and_is_kept(training, clock, tmp_path):
    predictor = training(lambda: WAVE)
    before = predictor.predict(WAVE[:60], 6)
    clock.time = 61
    during = predictor.predict(WAVE[:60], 6)
    after = predictor.predict(WAVE[:60], 6)
    np.testing.assert_array_equal(before.values, during.values)
    errors = [np.abs(forecast.values - WAVE[60:66]).mean() for forecast in (before, after)]
    assert errors[1] < errors[0]
    assert after.model == "gru"
    assert load(tmp_path / "new.gru").training.samples == len(WAVE)


def test_it_wants_as_many_samples_as_its_model(training):
    predictor = training(lambda: WAVE)
    assert predictor.wants == predictor.predictor.wants > 0


def test_nothing_is_trained_before_its_time_or_on_too_little(training, clock, tmp_path):
    asked = []

    def recorded():
        asked.append(clock.time)
        return WAVE[:100]

    predictor = training(recorded)
    for clock.time in (0, 59, 60, 61):
        predictor.predict(WAVE[:60], 6)
    assert asked == [60, 61]
    assert not (tmp_path / "new.gru").exists()


def test_training_that_fails_leaves_the_model_as_it_is(training, clock, caplog):
    predictor = training(lambda: np.full(300, np.nan))
    before = predictor.predict(WAVE[:60], 6)
    clock.time = 61
    predictor.predict(WAVE[:60], 6)
    np.testing.assert_array_equal(predictor.predict(WAVE[:60], 6).values, before.values)
    assert "retraining failed" in caplog.text
