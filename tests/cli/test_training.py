"""`elastream train`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elastream.predictors.recurrent import Gru
from elastream.predictors.recurrent import optimisation as learning

pytestmark = pytest.mark.xdist_group("networks")

Run = Callable[..., Any]
SHORT = ("--window", 12, "--horizon", 3, "--model", "gru")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "sine.csv"
    rates = 500 + 200 * np.sin(np.arange(200) / 5)
    file.write_text(
        "time,value\n" + "".join(f"{5 * i},{rate:.1f}\n" for i, rate in enumerate(rates))
    )
    return file


def test_train_saves_a_model_and_tells_its_errors(elastream: Run, trace: Path) -> None:
    out = trace.with_name("model")
    shown = elastream("train", "--trace", trace, "--out", out, "--epochs", 2, *SHORT)
    assert shown.code == 0
    rows = [line.split() for line in shown.out.splitlines()]
    assert rows[0] == ["part", "model", "RMSE", "MAE"]
    assert [row[:2] for row in rows[1:5]] == [
        ["validation", "gru"],
        ["validation", "basic"],
        ["test", "gru"],
        ["test", "basic"],
    ]
    assert shown.out.count("(last value)") == shown.out.count("(mean of 12)") == 1
    last_value = next(line.split() for line in shown.out.splitlines() if "(last value)" in line)
    assert float(last_value[-2]) < float(rows[4][2]), "on a slow sine it beats basic"
    assert rows[-1] == ["saved", "in", str(out)]
    training = Gru(out).model.training
    assert (training.origin.name, training.origin.step) == ("sine.csv", 5.0)
    assert training.samples == 200


def test_interrupt_keeps_the_best_so_far(
    elastream: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_epoch = learning._epoch

    def interrupted_epoch(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return run_epoch(*arguments)

    monkeypatch.setattr(learning, "_epoch", interrupted_epoch)
    out = trace.with_name("model")
    before = signal.getsignal(signal.SIGINT)
    shown = elastream("train", "--trace", trace, "--out", out, "--epochs", 30, *SHORT)
    assert shown.code == 0
    assert "best after epoch 1," in shown.out
    assert out.exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_wrong_model_is_refused_before_anything_is_read(elastream: Run, tmp_path: Path) -> None:
    shown = elastream("train", "--trace", tmp_path / "none", "--out", tmp_path, "--model", "gruu")
    assert shown.code == 2
    assert "unknown recurrent model 'gruu': did you mean 'gru'?" in shown.err


def test_missing_extra_is_named(
    elastream: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "elastream.predictors.recurrent.training", None)
    shown = elastream("train", "--trace", trace, "--out", trace.with_name("model"))
    assert shown.code == 2
    assert "the model 'bigru' needs an extra: pip install 'elastream[train]'" in shown.err


def test_place_that_cannot_hold_the_model_is_refused_at_once(elastream: Run, trace: Path) -> None:
    shown = elastream("train", "--trace", trace, "--out", trace.parent / "nowhere" / "model")
    assert shown.code == 2
    assert "must be a file in a folder that exists" in shown.err
