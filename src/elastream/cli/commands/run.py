"""`elastream run`: an application, or your own pipeline, on Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.options import (
    LOOPBACK,
    PORT,
    AsJson,
    Drawn,
    FillGaps,
    Host,
    Interval,
    LookBack,
    Objective,
    PolicyName,
    Port,
    PredictorName,
    Quantile,
    Replicas,
    Sample,
    Serve,
    Table,
    TraceName,
    Trained,
)
from elastream.cli.render.logs import LogFormat, LogFormatOption, set_up_logs, tell
from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.predictors.base import Predictor, Samples

LEAST_WINDOWS = 5
"""A model trains on at least this many times the samples that it reads."""


def run(
    pipeline: Annotated[
        str | None,
        typer.Argument(help="Your own pipeline, as FILE.py:NAME; without it, see --app."),
    ] = None,
    app: Annotated[str, typer.Option(help="twitter, twitter-complex, dns or logs.")] = "twitter",
    trace: TraceName = "spiky",
    fill_gaps: FillGaps = False,
    policy: PolicyName = "slo",
    predictor: PredictorName = "auto",
    objective_ms: Objective = None,
    quantile: Quantile = None,
    td: Interval = None,
    duration: Annotated[
        float | None,
        typer.Option(help="Stop after this many seconds; by default when the trace ends."),
    ] = None,
    speed: Annotated[float, typer.Option(help="Play the trace this many times as fast.")] = 1.0,
    scale: Annotated[float, typer.Option(help="Multiply the input rates.")] = 1.0,
    pool: Annotated[
        int | None,
        typer.Option(
            min=1, help="Replicas in the pool of each operator; by default as declared, or 4."
        ),
    ] = None,
    replicas: Replicas = None,
    table: Table = None,
    sample: Sample = 1.0,
    history: LookBack = 100,
    service_ms: Annotated[
        float, typer.Option(help="How many ms to wait for every event, besides the real work.")
    ] = 0.0,
    state: Annotated[
        str | None,
        typer.Option(help="A folder, or kafka:HOST:PORT/NAME; an existing state is resumed."),
    ] = None,
    on_error: Annotated[
        str,
        typer.Option(help="set-aside: failed events become dead letters; or fail: end the run."),
    ] = "set-aside",
    fail_on_dead_letters: Annotated[
        int | None, typer.Option(min=1, help="End with an error once this many events have failed.")
    ] = None,
    guard: Annotated[
        list[str] | None,
        typer.Option(help="A limit on the policy, such as cooldown:up=10,down=60."),
    ] = None,
    on_full: Annotated[
        str, typer.Option(help="block: a full queue makes its producers wait; or drop events.")
    ] = "block",
    master: Annotated[
        str | None, typer.Option(help="Spark's master URL; by default this machine.")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(help="A setting of Spark, as spark.NAME=VALUE.")
    ] = None,
    trained: Trained = None,
    retrain_every: Annotated[
        float | None,
        typer.Option(
            help="How often to retrain a trained model from the run's history, in seconds."
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
        chosen_model,
        chosen_policy,
        guard_from,
        td_of,
        trained_files,
    )
    from elastream.cli.render.results import show
    from elastream.cli.spark_run import Place, run_on_spark
    from elastream.cli.targets import chosen_target
    from elastream.control.run import Run
    from elastream.engines.spark.backends import open_backend
    from elastream.running.state import folder_of
    from elastream.running.traces import trace as chosen_trace

    set_up_logs(log_format)
    where = open_backend(state or tempfile.mkdtemp(prefix="elastream-"))
    folder = folder_of(where)
    rates = chosen_trace(trace, speed=speed, scale=scale, duration=duration, fill_gaps=fill_gaps)
    target = chosen_target(pipeline, app, pool, service_ms, folder)
    length = td_of(policy, td)
    chosen = chosen_policy(policy, rates, length, replicas, table, objective_ms, quantile)
    model = chosen_model(predictor, trained or ())
    if retrain_every is not None:
        model = _self_training(model, retrain_every, folder)
    guards = tuple(guard_from(option) for option in guard or ())
    asked = Run(target, rates, chosen, model, length, history, guards=guards)
    settings = {
        "sample": sample,
        "on_error": on_error,
        "on_full": on_full,
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
        show(result, as_json, picture, sum(done.status().set_aside.values()), done.warm_up)
    for line in last_lines:
        tell(line)
    if done.exception is not None:
        raise done.exception


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise InvalidInputError(f"--conf {text!r}: write spark.NAME=VALUE")
    return name, value


def _self_training(model: Predictor, every: float, folder: Path) -> Predictor:
    from elastream.control.history import HISTORY, History
    from elastream.predictors.cards import CARDS

    if model.name not in CARDS or not CARDS[model.name].trained:
        raise InvalidInputError(f"--retrain-every {every:g}: {model.name!r} is not a trained model")
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
