"""A run on Spark from its start to its end, watched, and served if somebody wants to steer it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event

from elastream.cli.interrupts import first_interrupt
from elastream.cli.logs import tell
from elastream.cli.run_service import Models, RunService, choices, recorded_by
from elastream.cli.spark_target import Target
from elastream.cli.watching import watched
from elastream.control import ControlLoop, Settings
from elastream.control.history import HISTORY, History
from elastream.engines.spark.engine import SparkEngine
from elastream.experiments.runs import Result, Run
from elastream.predictors import Predictor
from elastream.predictors.fallback import WithFallback

DRAIN_SECONDS = 60.0
SAMPLES_PER_INTERVAL = 6


def run_on_spark(
    run: Run,
    target: Target,
    folder: Path,
    sample: float | None = None,
    service: RunService | None = None,
    trained: Sequence[str] = (),
) -> Result:
    """Run it for as long as its trace lasts, or until somebody stops it, with the live table.

    Without a sample length, there are six samples in an interval, as in the authors' code.
    """
    tell(f"starting {target.topology} on Spark, state in {folder}")
    window = sample or run.td / SAMPLES_PER_INTERVAL
    engine = SparkEngine(target.topology, target.sources(run.trace), folder, sample=window)
    with ExitStack() as undo:
        undo.callback(engine.session.stop)
        undo.callback(engine.close)
        history = undo.enter_context(closing(History(folder / HISTORY)))
        live = service.follow(engine, window) if service else None
        models = Models(run.predictor, trained)
        loop = ControlLoop(
            engine,
            run.policy,
            _in_time(run.predictor, run.td),
            td=run.td,
            look_back=run.look_back,
            choices=choices(run.policy, models, window, _in_time),
            record=recorded_by(live, history),
        )
        interrupted = undo.enter_context(first_interrupt())
        if service and live:
            undo.enter_context(service.beside(loop, live, "spark", run.look_back, models))
        cycles = tuple(watched(loop, run.trace.duration, interrupted))
        _drain(engine, interrupted, loop.steering.settings)
        if live:
            live.end()
    return Result(run, cycles)


def _in_time(predictor: Predictor, td: float) -> Predictor:
    """A forecast that comes after its interval is of no use."""
    return WithFallback(predictor, timeout=td / 2)


def _drain(engine: SparkEngine, interrupted: Event, settings: Settings) -> None:
    """Let what is inside through, unless somebody says not to."""
    try:
        if interrupted.is_set():
            tell("draining; Ctrl-C again stops at once")
        if settings.drain and not engine.drain(DRAIN_SECONDS):
            tell("some events still wait; they stay in the state folder")
    except KeyboardInterrupt:
        tell("stopped; what waits stays in the state folder")
