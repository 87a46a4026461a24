"""`elastream run`: an application, or your own pipeline, on Spark."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.options import (
    LOOPBACK,
    MACHINES,
    ON_FULL,
    PORT,
    QUEUE_SIZE,
    QUEUES,
    SCALING,
    App,
    AsJson,
    Checkpoint,
    Drawn,
    Duration,
    FillGaps,
    Guards,
    Host,
    Initial,
    Interval,
    LookBack,
    Objective,
    OnFull,
    OwnPipelineName,
    PolicyName,
    Port,
    PredictorName,
    Quantile,
    QueueSize,
    Replicas,
    Sample,
    Scale,
    Serve,
    ServiceMs,
    Speed,
    Table,
    TraceName,
    Trained,
    refuse_without,
)
from elastream.cli.render.logs import LogFormat, LogFormatOption, report, set_up_logs
from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.predictors.base import Predictor, Samples

DRAIN_SECONDS = 60.0
LEAST_WINDOWS = 5
"""A model trains on at least this many times the samples that it reads."""


def run(
    context: typer.Context,
    pipeline: OwnPipelineName = None,
    app: App = "twitter",
    trace: TraceName = "spiky",
    fill_gaps: FillGaps = False,
    policy: PolicyName = "slo",
    predictor: PredictorName = "auto",
    objective_ms: Objective = None,
    quantile: Quantile = None,
    td: Interval = None,
    duration: Duration = None,
    speed: Speed = 1.0,
    scale: Scale = 1.0,
    pool: Annotated[
        int | None,
        typer.Option(
            min=1, help="Replicas in the pool of each operator; by default as declared, or 4."
        ),
    ] = None,
    replicas: Replicas = None,
    table: Table = None,
    sample: Sample = 1.0,
    look_back: LookBack = 100,
    initial: Initial = None,
    service_ms: ServiceMs = 0.0,
    benchmark: Annotated[
        bool,
        typer.Option(
            "--benchmark",
            help="Measure execution times first, with 1,000 events on this machine. Functions that "
            "write elsewhere write these events, too.",
        ),
    ] = False,
    state: Annotated[
        str | None,
        typer.Option(help="A folder, or kafka:HOST:PORT/NAME; an existing state is resumed."),
    ] = None,
    checkpoint: Checkpoint = None,
    on_error: Annotated[
        str,
        typer.Option(
            help="set-aside keeps failed events as dead letters; fail ends the run.",
            rich_help_panel=QUEUES,
        ),
    ] = "set-aside",
    fail_on_dead_letters: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="End with an error once this many events have failed.",
            rich_help_panel=QUEUES,
        ),
    ] = None,
    drain_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long draining may take.", rich_help_panel=QUEUES)
    ] = DRAIN_SECONDS,
    guards: Guards = None,
    queue_size: QueueSize = QUEUE_SIZE,
    on_full: OnFull = ON_FULL,
    master: Annotated[
        str | None,
        typer.Option(help="Spark's master URL; by default this machine.", rich_help_panel=MACHINES),
    ] = None,
    executors: Annotated[
        str | None,
        typer.Option(
            help="The minimum and the maximum of a cluster's executors, as 1:8; they follow the "
            "load then. By default, their number is fixed.",
            rich_help_panel=MACHINES,
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(help="A setting of Spark, as spark.NAME=VALUE.", rich_help_panel=MACHINES),
    ] = None,
    trained: Trained = None,
    retrain_every: Annotated[
        float | None,
        typer.Option(
            help="How often to retrain a trained model from the run's history, in seconds.",
            rich_help_panel=SCALING,
        ),
    ] = None,
    as_json: AsJson = False,
    out: Drawn = None,
    serve: Serve = False,
    host: Host = LOOPBACK,
    port: Port = PORT,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run a pipeline on Spark under a policy. Ctrl-C finishes the events inside, then stops."""
    from elastream.cli.choices import (
        check_loop,
        check_replicas,
        chosen_model,
        chosen_policy,
        executors_from,
        guard_from,
        td_of,
        trained_files,
    )
    from elastream.cli.own_pipeline import initial_from
    from elastream.cli.render.results import show
    from elastream.cli.spark_run import Place, run_on_spark
    from elastream.cli.targets import benchmarked, chosen_target
    from elastream.control.run import Run
    from elastream.engines.base import WhenFull, one_of
    from elastream.engines.spark.backends import open_backend
    from elastream.engines.spark.options import OnError
    from elastream.running.state import folder_of
    from elastream.running.traces import trace as chosen_trace

    set_up_logs(log_format)
    refuse_without(context, "serve", "host", "port")
    length = td_of(policy, td)
    check_loop(length, look_back)
    if not 0 < sample < float("inf"):
        raise InvalidInputError(f"--sample {sample:g}: it must be above 0")
    scaled = None if executors is None else executors_from(executors)
    where = open_backend(state or tempfile.mkdtemp(prefix="elastream-"), checkpoint)
    folder = folder_of(where)
    rates = chosen_trace(trace, speed=speed, scale=scale, duration=duration, fill_gaps=fill_gaps)
    target = chosen_target(pipeline, app, pool, service_ms, folder)
    check_replicas(target.topology, replicas)
    if benchmark:
        target = benchmarked(target)
    chosen = chosen_policy(policy, rates, length, replicas, table, objective_ms, quantile)
    model = chosen_model(predictor, trained or ())
    if retrain_every is not None:
        model = _self_training(model, retrain_every, folder)
    limits = tuple(map(guard_from, guards or ()))
    asked = Run(target, rates, chosen, model, length, look_back, guards=limits)
    settings = {
        "checkpoint": checkpoint,
        "sample": sample,
        "initial": initial_from(initial or (), target.topology),
        "queue_size": queue_size,
        "drain_seconds": drain_seconds,
        "on_error": one_of(OnError, on_error, "--on-error"),
        "on_full": one_of(WhenFull, on_full, "--on-full"),
        "executors": scaled,
        "fail_on_dead_letters": fail_on_dead_letters,
        "trained": trained_files(trained or ()),
    }
    config = dict(map(_setting, conf or ()))
    address = f"{host}:{port}" if serve else False
    place = Place(where.url, master, address, duration, settings, config)
    last_lines: list[str] = []
    result, done = run_on_spark(asked, target, place, last_lines.append)
    if result.stats or done.exception is None:
        picture = out / "run.png" if out else None
        ended = done.status()
        show(result, as_json, picture, sum(ended.set_aside.values()), done.warm_up)
        # The measures are those of whole intervals: what was drained after the last one is here.
        report(str(ended))
    for line in last_lines:
        report(line)
    if done.exception is not None:
        raise done.exception


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise InvalidInputError(f"--conf {text!r}: write spark.NAME=VALUE")
    return name, value


def _self_training(model: Predictor, every: float, folder: Path) -> Predictor:
    from elastream.control.history import HISTORY
    from elastream.control.history_reader import HistoryReader
    from elastream.predictors.cards import CARDS

    if model.name not in CARDS or not CARDS[model.name].trained:
        raise InvalidInputError(f"--retrain-every {every:g}: {model.name!r} is not a trained model")
    from elastream.predictors.recurrent.predictor import Recurrent
    from elastream.predictors.recurrent.retraining import Retraining
    from elastream.predictors.recurrent.self_training import SelfTraining

    assert isinstance(model, Recurrent)

    def recorded() -> Samples:
        with closing(HistoryReader(folder / HISTORY)) as history:
            return history.samples()

    schedule = Retraining(every, least_samples=LEAST_WINDOWS * model.least_samples)
    return SelfTraining(model, schedule, recorded, monotonic, folder / f"{model.name}.model")
