"""A simulation that people can watch and steer: paced, with a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from elastream.cli.render.logs import report
from elastream.cli.render.progress import watched
from elastream.control import ControlLoop
from elastream.control.history import HISTORY, History
from elastream.control.run import Result
from elastream.control.windows import InWindows
from elastream.core.stats import IntervalStats
from elastream.engines.simulation import PacedClock, SimulationEngine
from elastream.running import PipelineRun
from elastream.running.choices import Models, steering_choices
from elastream.running.handle import Ending, Surroundings
from elastream.running.service import RunService, recorded_by

if TYPE_CHECKING:
    from elastream.control.run import Run


def simulate_served(
    run: Run,
    pace: float,
    service: RunService,
    trained: Mapping[str, Path],
    finished: Callable[[Result], object],
    folder: Path | None,
) -> None:
    """Run it at `pace` seconds a second; after its end, keep serving until Ctrl-C."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    history = History(folder / HISTORY) if folder else None
    application, sample = run.application, run.settings.sample
    settings = replace(run.settings, initial=run.initial)
    engine = SimulationEngine(
        application.topology, run.trace, application.behaviour, settings, PacedClock(pace)
    )
    live = service.follow(engine, sample)
    windows: list[IntervalStats] = []
    engine.watch(InWindows(run.throughput_window, windows.append))
    models = Models(run.predictor, trained)
    loop = ControlLoop(
        engine,
        run.policy,
        run.predictor,
        td=run.td,
        guards=run.guards,
        look_back=run.look_back,
        choices=steering_choices(run.policy, models),
        record=recorded_by(live, history),
    )
    with service.beside(loop, live, "simulation", run.look_back, models):
        report(f"watch and steer it at {service.url}", url=service.url)
        going = PipelineRun(
            engine,
            loop,
            Ending(until=run.trace.duration),
            Surroundings(url=service.url, say=report),
        )
        cycles = tuple(watched(going.follow(), loop))
        live.end()
        if history:
            history.close()
        finished(Result(run, cycles, tuple(windows), engine.topology))
        if not (going.interrupted or loop.steering.settings.stopping):
            report(f"the run has ended; its page stays at {service.url} until Ctrl-C")
            with suppress(KeyboardInterrupt):
                Event().wait()
