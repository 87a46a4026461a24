"""A run on Spark from its start to its end, watched, and served if somebody wants to steer it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from elastream.cli.interrupts import first_interrupt
from elastream.cli.render.logs import tell
from elastream.cli.render.progress import watched
from elastream.cli.run_service import Models, RunService, choices, recorded_by
from elastream.cli.targets import Target
from elastream.control import ControlLoop, Settings
from elastream.control.history import HISTORY, History
from elastream.control.run import Result, Run
from elastream.engines.base import WhenFull
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.preflight import slots_for
from elastream.engines.spark.driver.session import new_session
from elastream.engines.spark.options import OnError
from elastream.predictors import Predictor
from elastream.predictors.fallback import WithFallback

DRAIN_SECONDS = 60.0
SAMPLES_PER_INTERVAL = 6


@dataclass(frozen=True)
class Place:
    """Where and how a run works."""

    folder: Path
    """The state folder."""
    sample: float | None = None
    """The length of a sample; six make an interval unless given, as in the authors' code."""
    on_error: OnError = OnError.SET_ASIDE
    on_full: WhenFull = WhenFull.BLOCK
    master: str | None = None

    def engine(self, target: Target, run: Run, window: float) -> SparkEngine:
        """The pipeline, started."""
        tell(f"starting {target.topology} on Spark, state in {self.folder}")
        slots = slots_for(target.topology, generations=1)
        session = new_session(slots, self.master) if self.master else None
        return SparkEngine(
            target.topology,
            target.sources(run.trace),
            self.folder,
            session,
            sample=window,
            on_error=self.on_error,
            on_full=self.on_full,
        )


def run_on_spark(
    run: Run,
    target: Target,
    place: Place,
    service: RunService | None = None,
    trained: Sequence[str] = (),
) -> Result:
    """Run it for as long as its trace lasts, or until somebody stops it, with the live table."""
    window = place.sample or run.td / SAMPLES_PER_INTERVAL
    engine = place.engine(target, run, window)
    try:
        return _watched(run, engine, place.folder, window, service, trained)
    finally:
        engine.close()
        engine.session.stop()


def _watched(
    run: Run,
    engine: SparkEngine,
    folder: Path,
    window: float,
    service: RunService | None,
    trained: Sequence[str],
) -> Result:
    history = History(folder / HISTORY)
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
    beside = (
        service.beside(loop, live, "spark", run.look_back, models)
        if service and live
        else nullcontext()
    )
    with first_interrupt(loop.interrupt) as interrupted, beside:
        cycles = tuple(watched(loop, run.trace.duration, interrupted))
        _drain(engine, interrupted, loop.steering.settings)
        if live:
            live.end()
    history.close()
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
