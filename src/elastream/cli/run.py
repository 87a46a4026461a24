"""`elastream run`: an application, or a pipeline of your own, on Spark."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.interrupts import first_interrupt
from elastream.cli.model_choice import TRAINED_HELP
from elastream.cli.trace_options import TABLE_HELP, FillGaps
from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.cli.spark_target import Target
    from elastream.control import ControlLoop, Cycle
    from elastream.engines.spark.engine import SparkEngine
    from elastream.experiments.runs import Result, Run
    from elastream.predictors.base import Predictor, Samples

DRAIN_SECONDS = 60.0
SAMPLES_PER_INTERVAL = 6
HISTORY = "history.db"
LEAST_WINDOWS = 5
"""A model learns from at least so many times the samples that it reads."""


def run(
    pipeline: Annotated[
        str | None,
        typer.Argument(help="A pipeline of your own, as FILE.py:NAME; else see --app."),
    ] = None,
    app: Annotated[str, typer.Option(help="twitter, twitter-complex, dns or logs.")] = "twitter",
    trace: Annotated[
        str, typer.Option(help="A name of 'elastream traces', or a CSV file.")
    ] = "spiky",
    fill_gaps: FillGaps = False,
    policy: Annotated[str, typer.Option(help="A name of 'elastream policies'.")] = "pa-sps",
    predictor: Annotated[
        str, typer.Option(help="A name of 'elastream models', or NAME@URL of a service.")
    ] = "lr",
    td: Annotated[float, typer.Option(help="Length of the control interval, in seconds.")] = 5.0,
    duration: Annotated[
        float | None, typer.Option(help="Stop after so many seconds; else when the trace ends.")
    ] = None,
    speed: Annotated[float, typer.Option(help="Play the trace so many times as fast.")] = 1.0,
    scale: Annotated[float, typer.Option(help="Multiply the input rates.")] = 1.0,
    pool: Annotated[int, typer.Option(min=1, help="Replicas in the pool of each operator.")] = 4,
    replicas: Annotated[int | None, typer.Option(help="For the policy static: how many.")] = None,
    table: Annotated[Path | None, typer.Option(help=TABLE_HELP)] = None,
    sample: Annotated[
        float | None, typer.Option(help="Length of a sampling window, in seconds; td / 6.")
    ] = None,
    history: Annotated[int, typer.Option(help="How many samples the predictor sees.")] = 12,
    service_ms: Annotated[
        float, typer.Option(help="Wait so long for every event, besides the real work.")
    ] = 0.0,
    state: Annotated[
        Path | None, typer.Option(help="The state folder; a run that stopped goes on from it.")
    ] = None,
    trained: Annotated[list[str] | None, typer.Option(help=TRAINED_HELP)] = None,
    retrain_every: Annotated[
        float | None,
        typer.Option(help="Train a trained model again from the run's own history, in seconds."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    out: Annotated[Path | None, typer.Option(help="Draw the run in this folder.")] = None,
) -> None:
    """Run a pipeline on Spark under a policy. Ctrl-C lets what is inside through, then stops."""
    from elastream.cli.model_choice import chosen_model
    from elastream.cli.policy_choice import chosen_policy
    from elastream.cli.results import show
    from elastream.cli.spark_target import chosen_target, played
    from elastream.experiments.runs import Run

    folder = state or Path(tempfile.mkdtemp(prefix="elastream-"))
    rates = played(trace, speed, scale, duration, fill_gaps)
    target = chosen_target(pipeline, app, pool, service_ms, folder)
    chosen = chosen_policy(policy, rates, td, replicas, table)
    model = chosen_model(predictor, trained or ())
    if retrain_every is not None:
        model = _self_training(model, retrain_every, folder)
    result = run_on_spark(Run(target, rates, chosen, model, td, history), target, folder, sample)
    show(result, as_json, out / "run.png" if out else None)


def _self_training(model: Predictor, every: float, folder: Path) -> Predictor:
    from elastream.control.history import History
    from elastream.predictors.cards import CARDS

    if model.name not in CARDS or not CARDS[model.name].trained:
        raise InvalidInputError(f"--retrain-every {every:g}: {model.name!r} is no trained model")
    from elastream.predictors.recurrent.predictor import Recurrent
    from elastream.predictors.recurrent.retraining import Retraining
    from elastream.predictors.recurrent.self_training import SelfTraining

    assert isinstance(model, Recurrent)

    def recorded() -> Samples:
        history = History(folder / HISTORY)
        try:
            return history.samples()
        finally:
            history.close()

    schedule = Retraining(every, least_samples=LEAST_WINDOWS * model.least_samples)
    return SelfTraining(model, schedule, recorded, monotonic, folder / f"{model.name}.model")


def run_on_spark(run: Run, target: Target, folder: Path, sample: float | None = None) -> Result:
    """Run it for as long as its trace lasts, or until Ctrl-C, with the live table.

    Without a sample length, there are six samples in an interval, as in the authors' code.
    """
    from elastream.control import ControlLoop
    from elastream.control.history import History
    from elastream.engines.spark.engine import SparkEngine
    from elastream.experiments.runs import Result
    from elastream.predictors.fallback import WithFallback

    typer.echo(f"elastream: starting {target.topology} on Spark, state in {folder}", err=True)
    engine = SparkEngine(
        target.topology,
        target.sources(run.trace),
        folder,
        sample=sample or run.td / SAMPLES_PER_INTERVAL,
    )
    history = History(folder / HISTORY)
    loop = ControlLoop(
        engine,
        run.policy,
        # A forecast that comes after its interval is of no use.
        WithFallback(run.predictor, timeout=run.td / 2),
        td=run.td,
        look_back=run.look_back,
        record=history.record,
    )
    with first_interrupt() as interrupted:
        cycles = list(_watch(loop, run.intervals, interrupted))
        _end(engine, interrupted)
    history.close()
    return Result(run, tuple(cycles))


def _watch(loop: ControlLoop, intervals: int, interrupted: Event) -> Iterator[Cycle]:
    """The cycles of the loop, shown as they come."""
    from rich.console import Console
    from rich.live import Live

    from elastream.cli.live_table import live_table

    with Live(console=Console(file=sys.stderr), auto_refresh=False) as live:
        for cycle in loop.run(intervals):
            live.update(live_table(loop.engine.topology, cycle), refresh=True)
            yield cycle
            if interrupted.is_set():
                return


def _end(engine: SparkEngine, interrupted: Event) -> None:
    """Let what is inside through, unless a second Ctrl-C says not to."""
    try:
        if interrupted.is_set():
            typer.echo("elastream: draining; Ctrl-C again stops at once", err=True)
        if not engine.drain(DRAIN_SECONDS):
            typer.echo("elastream: some events still wait; they stay in the state folder", err=True)
    except KeyboardInterrupt:
        typer.echo("elastream: stopped; what waits stays in the state folder", err=True)
    finally:
        engine.close()
        engine.session.stop()
