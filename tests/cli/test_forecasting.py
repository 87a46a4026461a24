"""`elastream models`, `elastream predict` and `elastream backtest`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elastream.predictors import PREDICTORS
from elastream.predictors.cards import CARDS

Run = Callable[..., Any]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rates = 500 + 200 * np.sin(np.arange(60) / 5)
    file = tmp_path / "trace.csv"
    file.write_text(
        "time,value\n" + "".join(f"{5 * i},{rate:.1f}\n" for i, rate in enumerate(rates))
    )
    return file


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    file = tmp_path / "samples.txt"
    file.write_text("10\n20\n30\n")
    return file


def test_every_model_has_a_card() -> None:
    assert set(CARDS) == set(PREDICTORS)


def test_models_lists_what_there_is(elastream: Run) -> None:
    rows, note = elastream("models").out.split("\n\n")
    lines = [line.split() for line in rows.splitlines()]
    assert lines[0] == ["name", "paper", "parameters", "extra", "installed"]
    assert [line[0] for line in lines[1:]] == list(PREDICTORS)
    assert ["rf", "PA-SPS", "seed=0,", "window=1000", "forecast", "yes"] in lines
    assert note.startswith("auto is the default")


def test_models_says_what_to_install(elastream: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastream.predictors.cards.find_spec", lambda name: None)
    assert "forecast  no: pip install 'elastream[forecast]'" in elastream("models").out


def test_predict_prints_the_forecast(elastream: Run, samples: Path) -> None:
    shown = elastream("predict", "--model", "lr", "--samples", samples, "--horizon", 3)
    assert (shown.code, shown.out, shown.err) == (0, "40\n50\n60\n", "")


def test_predict_prints_json(elastream: Run, samples: Path) -> None:
    shown = elastream("predict", "--model", "lr", "--samples", samples, "--horizon", 2, "--json")
    answer = json.loads(shown.out)
    assert answer.pop("elapsed_ms") >= 0
    assert answer == {"model": "lr", "predictions": [40, 50], "mean": 45}


def test_predict_says_when_basic_stood_in(elastream: Run, samples: Path) -> None:
    arguments = ["predict", "--model", "arima", "--samples", samples, "--horizon", 1]
    assert elastream(*arguments).err == "basic stood in: arima needs 10 samples and has 3\n"
    answer = json.loads(elastream(*arguments, "--json").out)
    assert (answer["model"], answer["fallback"]) == ("basic", "arima needs 10 samples and has 3")


def test_predict_reads_a_trace(elastream: Run, trace: Path) -> None:
    shown = elastream("predict", "--model", "fft", "--samples", trace)
    assert len(shown.out.splitlines()) == 6


def test_backtest_prints_a_table(elastream: Run, trace: Path) -> None:
    shown = elastream("backtest", "--trace", trace, "--models", "basic,lr,fft", "--look-back", 24)
    assert shown.code == 0
    header, *rows, summary = [line.split() for line in shown.out.splitlines()]
    assert header == ["model", "MAE", "RMSE", "MAPE", "%", "covered", "pinball", "ms", "fallbacks"]
    models = [row[0] for row in rows]
    assert sorted(models) == ["(last", "(mean", "basic", "fft", "lr"]
    errors = [float(row[-6]) for row in rows]
    assert errors == sorted(errors)
    assert " ".join(summary).startswith("6 forecasts each, 24 samples in, 6 out")


def test_backtest_takes_a_shipped_trace(elastream: Run) -> None:
    shown = elastream("backtest", "--trace", "spiky", "--models", "lr", "--origins", 1)
    assert shown.code == 0
    assert "lr " in shown.out
    missing = elastream("backtest", "--trace", "spikyy", "--models", "lr")
    assert missing.code == 2
    assert "no such file, and no trace of that name; there are spiky" in missing.err


def test_backtest_draws_forecast_against_truth(elastream: Run, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "folder"
    shown = elastream(
        "backtest", "--trace", trace, "--models", "lr", "--look-back", 24, "--out", out
    )
    assert f"drawn in {out / 'backtest.png'}" in shown.out
    assert (out / "backtest.png").read_bytes().startswith(b"\x89PNG")


def test_backtest_of_all_runs_all_that_need_no_training(elastream: Run, trace: Path) -> None:
    shown = elastream("backtest", "--trace", trace, "--origins", 1, "--look-back", 24)
    names = {line.split()[0] for line in shown.out.splitlines()[1:-1]}
    names = {name for name in names if not name.startswith("(")}
    assert names == {name for name, card in CARDS.items() if not card.trained}


def test_backtest_of_all_says_what_it_lacks(
    elastream: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("backtest", "--trace", trace, "--origins", 1, "--look-back", 24)
    monkeypatch.setattr("elastream.predictors.cards.find_spec", lambda name: None)
    last = elastream(*options).out.splitlines()[-1]
    assert last.startswith("not installed: ann, rf, arima, svr, lstm")
    assert "not installed" not in elastream(*options, "--models", "lr").out


def test_a_trained_model_is_used_like_the_others(
    elastream: Run, trace: Path, trained_files: dict[str, Path]
) -> None:
    option = ["--trained", f"bigru={trained_files['bigru']}"]
    forecast = elastream("predict", "--samples", trace, "--model", "bigru", "--json", *option)
    assert json.loads(forecast.out)["model"] == "bigru"
    shown = elastream("backtest", "--trace", trace, "--origins", 1, "--look-back", 24, *option)
    assert any(line.startswith("bigru ") for line in shown.out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "--model", "magic", "--samples", "S"], "unknown predictor 'magic'"),
        (["predict", "--model", "lr,fft", "--samples", "S"], "lr,fft: name one model"),
        (["predict", "--samples", "missing.txt"], "missing.txt: cannot be read: No such file"),
        (["predict", "--model", "bigru", "--samples", "S"], "'bigru' needs a trained model"),
        (["predict", "--samples", "S", "--horizon", "0"], "the horizon must be 1 to 10000, not 0"),
        (["predict", "--samples", "S", "--trained", "lr=x"], "--trained lr=x: must be NAME=FILE"),
        (["backtest", "--trace", "S"], "samples.txt:1: the header must be 'time,value', not '10'"),
        (["backtest", "--trace", "T"], "needs a series of at least 106, and this one has 60"),
        (["backtest", "--trace", "T", "--horizon", "0"], "a horizon of at least 1 sample, not 0"),
        (["backtest", "--trace", "T", "--models", "lr,"], "unknown predictor ''"),
        (
            ["backtest", "--trace", "T", "--models", "lr", "--look-back", "24", "--out", "S/below"],
            "backtest.png: cannot be written: Not a directory",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    elastream: Run, samples: Path, trace: Path, arguments: list[str], message: str
) -> None:
    files = {"S": str(samples), "T": str(trace), "S/below": f"{samples}/below"}
    shown = elastream(*(files.get(argument, argument) for argument in arguments))
    assert shown.code == 2
    last = shown.err.splitlines()[-1]
    assert last.startswith("elastream: ")
    assert message in last
    assert "Traceback" not in shown.err
