"""A simulation that people can watch and steer: paced, with the service beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elastream.cli.interrupts import first_interrupt
from elastream.cli.render.logs import tell
from elastream.cli.render.progress import watched
from elastream.cli.run_service import Models, RunService, choices, recorded_by
from elastream.control import ControlLoop
from elastream.control.history import HISTORY, History
from elastream.control.run import Result
from elastream.engines.simulation import PacedClock, SimulationEngine

if TYPE_CHECKING:
    from elastream.control.run import Run


def simulate_served(
    run: Run,
    speed: float,
    service: RunService,
    trained: Sequence[str],
    finished: Callable[[Result], object],
    folder: Path | None,
) -> None:
    """Run it at `speed` seconds a second; at its own end, go on answering until Ctrl-C."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    history = History(folder / HISTORY) if folder else None
    application, sample = run.application, run.settings.sample
    engine = SimulationEngine(
        application.topology, run.trace, application.behaviour, run.settings, PacedClock(speed)
    )
    live = service.follow(engine, sample)
    models = Models(run.predictor, trained)
    loop = ControlLoop(
        engine,
        run.policy,
        run.predictor,
        td=run.td,
        look_back=run.look_back,
        choices=choices(run.policy, models, sample),
        record=recorded_by(live, history),
    )
    with (
        first_interrupt(loop.interrupt) as interrupted,
        service.beside(loop, live, "simulation", run.look_back, models),
    ):
        cycles = tuple(watched(loop, run.trace.duration, interrupted))
        live.end()
        engine.close()
        if history:
            history.close()
        finished(Result(run, cycles))
        if not (interrupted.is_set() or loop.steering.settings.stopping):
            tell(f"the run is over; it can still be seen at {service.url} until Ctrl-C")
            interrupted.wait()
