"""`elastream train`: a recurrent model from a trace."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import sqrt
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from elastream.cli.options import FillGaps

if TYPE_CHECKING:
    from elastream.predictors.recurrent.model import TrainedModel
    from elastream.predictors.recurrent.optimisation import Epoch
    from elastream.workloads.traces import Trace


def train(
    trace: Annotated[Path, typer.Option(help="A CSV file with the header time,value.")],
    out: Annotated[Path, typer.Option(help="Where the trained model goes.")],
    model: Annotated[str, typer.Option(help="lstm, gru, bilstm or bigru.")] = "bigru",
    window: Annotated[int, typer.Option(help="How many samples the model reads.")] = 96,
    horizon: Annotated[int, typer.Option(help="How many samples it forecasts at once.")] = 6,
    epochs: Annotated[int, typer.Option(help="How many passes over the trace at most.")] = 40,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    train_share: Annotated[
        float, typer.Option(help="The oldest share of the trace, for training.")
    ] = 0.667,
    validation_share: Annotated[
        float, typer.Option(help="The next share, for validation. The rest is for testing.")
    ] = 0.167,
    fill_gaps: FillGaps = False,
) -> None:
    """Train a recurrent model on a trace. Ctrl-C ends it early, and keeps the best so far."""
    from elastream.errors import InvalidInputError, MissingExtraError
    from elastream.predictors.recurrent.architecture import Architecture
    from elastream.predictors.recurrent.model import Origin
    from elastream.predictors.recurrent.model_file import save
    from elastream.predictors.recurrent.split import Split
    from elastream.workloads.traces import load_trace

    architecture = Architecture(model, window=window, horizon=horizon)
    try:
        from elastream.predictors.recurrent.training import train as run
    except ModuleNotFoundError:
        raise MissingExtraError(f"the model {model!r}", "train") from None
    if out.is_dir() or not out.parent.is_dir():
        raise InvalidInputError(f"--out {out}: must be a file in a folder that exists")
    recorded = load_trace(trace, fill_gaps)
    bar = typer.progressbar(length=epochs, label=f"train {model}", file=sys.stderr)
    with _first_interrupt() as interrupted, bar:

        def after_epoch(epoch: Epoch) -> bool:
            bar.label = f"train {model}, RMSE {sqrt(epoch.best_mse):.4f} of the range"
            bar.update(1)
            return not interrupted.is_set()

        trained = run(
            recorded.values,
            architecture,
            Origin(trace.name, recorded.step),
            split=Split(train_share, validation_share),
            epochs=epochs,
            seed=seed,
            after_epoch=after_epoch,
        )
    save(trained, out)
    typer.echo(_report(trained, recorded))
    typer.echo(f"saved in {out}")


def _report(trained: TrainedModel, recorded: Trace) -> str:
    """The errors of the model, and of forecasts that need none, where it did not train."""
    from elastream.cli.render.table import table

    training, name = trained.training, trained.architecture.model
    parts = [("validation", training.validation), ("test", training.test)]
    rows = [
        [part, model, f"{rmse:,.2f}", f"{mae:,.2f}"]
        for part, errors in parts
        if errors is not None
        for model, rmse, mae in (
            (name, errors.rmse, errors.mae),
            ("basic", errors.basic_rmse, errors.basic_mae),
        )
    ]
    if training.test is not None:
        rows += _of_yardsticks(trained, recorded)
    errors_table = table(["part", "model", "RMSE", "MAE"], rows, numbers=["RMSE", "MAE"])
    return f"{errors_table}\nbest after epoch {training.epochs}, on {training.samples:,} samples"


def _of_yardsticks(trained: TrainedModel, recorded: Trace) -> list[list[str]]:
    """What the model should beat besides `basic`, on the part to test with."""
    from elastream.predictors.accuracy import mae, rmse
    from elastream.predictors.recurrent.split import Split, window_starts
    from elastream.predictors.yardsticks import forecasts_from, yardsticks

    training, architecture, values = trained.training, trained.architecture, recorded.values
    split = Split(training.train_share, training.validation_share)
    moments = window_starts(architecture, len(values), split).test + architecture.window
    truth = np.stack([values[at : at + architecture.horizon] for at in moments])
    rows = []
    for yardstick in yardsticks(recorded.step, len(values)):
        found = forecasts_from(yardstick, values, moments.tolist(), architecture.horizon)
        rows.append(["test", yardstick.name, f"{rmse(truth, found):,.2f}"])
        rows[-1].append(f"{mae(truth, found):,.2f}")
    return rows


@contextmanager
def _first_interrupt() -> Iterator[Event]:
    """Set by the first Ctrl-C; the second one ends the program as usual."""
    interrupted = Event()

    def remember(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
