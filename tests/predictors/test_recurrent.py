"""The recurrent models, on a sine: small networks, so that a training takes seconds."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from elastream.errors import InvalidInputError, MissingExtraError, UnknownNameError
from elastream.predictors import PREDICTORS
from elastream.predictors.backtest import backtest
from elastream.predictors.basic import Basic
from elastream.predictors.recurrent import BiGru, BiLstm, Gru, Lstm, Recurrent
from elastream.predictors.recurrent.architecture import CELLS, Architecture
from elastream.predictors.recurrent.model import Origin, TrainedModel
from elastream.predictors.recurrent.model_file import load, save
from elastream.predictors.recurrent.retraining import Retraining, retrained
from elastream.predictors.recurrent.split import Split, window_starts
from elastream.predictors.recurrent.training import train

pytestmark = pytest.mark.xdist_group("networks")

SINE = 500 + 200 * np.sin(np.arange(700) / 9)
ORIGIN = Origin("sine", step=5.0)


def small(model: str) -> Architecture:
    return Architecture(model, window=24, horizon=6, hidden=8, stride=4)


def small_model(name: str, seed: int = 3, epochs: int = 15) -> TrainedModel:
    return train(SINE, small(name), ORIGIN, epochs=epochs, seed=seed)


@pytest.fixture(scope="module")
def gru() -> TrainedModel:
    return small_model("gru")


@pytest.fixture(scope="module")
def gru_predictor(gru: TrainedModel) -> Recurrent:
    return Gru.of(gru)


@pytest.fixture(scope="module", params=CELLS)
def trained(request: pytest.FixtureRequest, gru: TrainedModel) -> TrainedModel:
    return gru if request.param == "gru" else small_model(request.param)


def predictor_of(model: TrainedModel) -> Recurrent:
    return {"lstm": Lstm, "gru": Gru, "bilstm": BiLstm, "bigru": BiGru}[
        model.architecture.model
    ].of(model)


def test_training_beats_basic_on_a_sine(trained: TrainedModel) -> None:
    errors = trained.training.test
    assert errors is not None
    assert errors.rmse < errors.basic_rmse / 2
    assert errors.mae < errors.basic_mae / 2


def test_predictor_forecasts_as_well_as_training_said(trained: TrainedModel) -> None:
    unseen = SINE[600:]
    ours = backtest(predictor_of(trained), unseen, 6, history=30)
    assert ours.fallbacks == 0
    assert ours.rmse < backtest(Basic(), unseen, 6, history=30).rmse / 2


def test_saved_and_loaded_is_the_same(trained: TrainedModel, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(trained, path)
    name = trained.architecture.model
    again = PREDICTORS[name](path=path)
    np.testing.assert_array_equal(
        again.predict(SINE[:50], 20).values, predictor_of(trained).predict(SINE[:50], 20).values
    )
    assert again.name == name
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_file_says_what_it_was_trained_on(gru: TrainedModel, tmp_path: Path) -> None:
    save(gru, tmp_path / "model")
    about = load(tmp_path / "model")
    assert (about.architecture, about.range, about.training) == (
        gru.architecture,
        gru.range,
        gru.training,
    )
    assert about.training.origin == ORIGIN
    assert about.training.samples == len(SINE)


def test_same_seed_same_model(gru: TrainedModel) -> None:
    again, other = small_model("gru"), small_model("gru", seed=4)
    assert asdict(again.training) == asdict(gru.training)
    for name, weight in gru.weights.items():
        np.testing.assert_array_equal(again.weights[name], weight)
    assert any(not np.array_equal(other.weights[name], gru.weights[name]) for name in gru.weights)


def test_training_can_be_ended_and_keeps_the_best() -> None:
    seen = []
    model = train(
        SINE, small("gru"), ORIGIN, epochs=4, after_epoch=lambda epoch: seen.append(epoch) or False
    )
    assert [(epoch.number, epoch.of) for epoch in seen] == [(1, 4)]
    assert model.training.epochs == 1


def test_short_history_lets_basic_stand_in(gru_predictor: Recurrent) -> None:
    forecast = gru_predictor.predict(SINE[:23], 3)
    assert (forecast.model, forecast.fallback) == ("basic", "gru needs 24 samples and has 23")


def test_constant_history_gives_a_constant_forecast(gru_predictor: Recurrent) -> None:
    np.testing.assert_array_equal(gru_predictor.predict([7.0] * 30, 9).values, [7.0] * 9)


def test_longer_horizon_begins_with_the_shorter_one(gru_predictor: Recurrent) -> None:
    long = gru_predictor.predict(SINE[:50], 10_000).values
    np.testing.assert_array_equal(gru_predictor.predict(SINE[:50], 4).values, long[:4])
    assert np.all(np.isfinite(long))
    assert np.all(long >= 0)


@pytest.mark.parametrize("factor", [0.0001, 3, 1e6, 1e300])
def test_load_far_from_the_training_range_stays_sane(
    gru_predictor: Recurrent, factor: float
) -> None:
    history = SINE[:50] * factor
    forecast = gru_predictor.predict(history, 6)
    assert forecast.fallback is None
    assert np.all(forecast.values >= 0)
    width = gru_predictor.model.range.width
    assert np.all(np.abs(forecast.values - history[-1]) <= 5 * width)


def test_it_gets_its_whole_window_where_others_look_back_less(gru_predictor: Recurrent) -> None:
    assert gru_predictor.wants == small("gru").window


def test_every_length_of_history_is_the_same_to_it(gru_predictor: Recurrent) -> None:
    np.testing.assert_array_equal(
        gru_predictor.predict(SINE[:60], 6).values, gru_predictor.predict(SINE[20:60], 6).values
    )


def test_file_of_another_model_is_refused(gru: TrainedModel, tmp_path: Path) -> None:
    save(gru, tmp_path / "model")
    with pytest.raises(InvalidInputError, match="model is a trained 'gru', not 'lstm'"):
        Lstm(tmp_path / "model")


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match="nowhere: not a trained model: there is no such file"
    ):
        Gru(tmp_path / "nowhere")


def test_model_that_cannot_be_written_is_told(gru: TrainedModel, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be written: No such file or directory"):
        save(gru, tmp_path / "nowhere" / "model")


@pytest.mark.parametrize(
    "content", [b"", b"time,value\n0,1\n", b"PK\x03\x04 and no more", b"\x80\x04."]
)
def test_foreign_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="model: not a trained model: it is damaged"):
        Gru(path)


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_damaged_file_is_refused(gru: TrainedModel, place: float, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(gru, path)
    content = bytearray(path.read_bytes())
    begin = int(len(content) * place)
    content[begin : begin + 40] = bytes(255 - byte for byte in content[begin : begin + 40])
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="not a trained model"):
        Gru(path)


def test_truncated_file_is_refused(gru: TrainedModel, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(gru, path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidInputError, match="not a trained model"):
        Gru(path)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("{}", "does not say what elastream writes"),
        ("[]", "does not say what elastream writes"),
        ("no json", "does not say what elastream writes"),
        (json.dumps({"format": "elastream recurrent model 9"}), "its format is"),
    ],
)
def test_archive_of_something_else_is_refused(about: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, about=np.array(about))
    with pytest.raises(InvalidInputError, match=message):
        Gru(path)


def test_weights_of_another_shape_are_refused(gru: TrainedModel, tmp_path: Path) -> None:
    wider = replace(gru, architecture=replace(gru.architecture, hidden=9))
    save(wider, tmp_path / "model")
    with pytest.raises(InvalidInputError, match="the weights are not those of a gru"):
        Gru(tmp_path / "model")


def test_missing_extra_is_named(
    gru: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(gru, tmp_path / "model")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r"the model 'gru' needs .*elastream\[train\]"):
        Gru(tmp_path / "model")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"window": 0}, "the window must be a whole number from 1, not 0"),
        ({"horizon": 1.5}, "the horizon must be a whole number from 1, not 1.5"),
        ({"window": 25}, "the window must be a multiple of 4"),
    ],
)
def test_impossible_architecture_is_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        replace(small("gru"), **wrong)


def test_unknown_model_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'bigru'"):
        small("bigruu")


def test_constant_series_teaches_nothing() -> None:
    with pytest.raises(InvalidInputError, match="there is nothing to learn"):
        train(np.full(700, 5.0), small("gru"), ORIGIN)


def test_series_that_is_too_short_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"30 samples are too few .* the train"):
        train(SINE[:30], small("gru"), ORIGIN)


def test_parts_do_not_overlap() -> None:
    parts = window_starts(small("gru"), 120, Split(0.5, 0.25))
    forecast = [set(np.concatenate([s + 24 + np.arange(6) for s in part])) for part in parts]
    assert forecast == [set(range(24, 60)), set(range(60, 90)), set(range(90, 120))]


@pytest.mark.parametrize("shares", [(0.0, 0.5), (0.5, 0.0), (0.8, 0.3), (float("nan"), 0.2)])
def test_impossible_shares_are_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(InvalidInputError, match="the shares"):
        Split(*shares)


def test_retraining_is_due_on_schedule() -> None:
    policy = Retraining(every=60, least_samples=100)
    assert not policy.due(now=159, last=100, samples=500)
    assert policy.due(now=160, last=100, samples=100)
    assert not policy.due(now=160, last=100, samples=99)


@pytest.mark.parametrize(("every", "least"), [(0, 100), (float("nan"), 100), (60, 1)])
def test_impossible_schedule_is_refused(every: float, least: int) -> None:
    with pytest.raises(InvalidInputError, match="retraining needs"):
        Retraining(every=every, least_samples=least)


def test_retraining_follows_a_load_that_changed(gru: TrainedModel) -> None:
    changed = 4_000 + 3_000 * np.sin(np.arange(700) / 5)
    model = retrained(changed, gru, epochs=4)
    assert model is not gru
    assert model.architecture == gru.architecture
    assert model.range.high > 6_000
    assert model.training.test is not None


def test_retraining_keeps_a_model_that_is_better(gru: TrainedModel) -> None:
    assert retrained(SINE, gru, epochs=1) is gru
