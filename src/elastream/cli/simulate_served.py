"""A simulation that people can watch and steer: paced, with the service beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from elastream.cli.interrupts import first_interrupt
from elastream.cli.logs import tell
from elastream.cli.run_service import Models, RunService, choices
from elastream.cli.watching import watched
from elastream.control import ControlLoop
from elastream.engines.simulation import PacedClock, SimulationEngine
from elastream.experiments.runs import Result
from elastream.service.live import Live

if TYPE_CHECKING:
    from elastream.experiments.runs import Run


def simulate_served(
    run: Run,
    speed: float,
    service: RunService,
    trained: Sequence[str],
    finished: Callable[[Result], object],
) -> None:
    """Run it at `speed` seconds a second; at its own end, go on answering until Ctrl-C."""
    application, sample = run.application, run.settings.sample
    clock = PacedClock(speed)
    engine = SimulationEngine(
        application.topology, run.trace, application.behaviour, run.settings, clock
    )
    live = Live(application.topology, clock.now, sample)
    engine.watch(live.watch)
    models = Models(run.predictor, trained)
    loop = ControlLoop(
        engine,
        run.policy,
        run.predictor,
        td=run.td,
        look_back=run.look_back,
        choices=choices(run.policy, models, sample),
        record=live.record,
    )
    with (
        first_interrupt() as interrupted,
        service.beside(loop, live, "simulation", run.look_back, models),
    ):
        cycles = tuple(watched(loop, run.trace.duration, interrupted))
        live.end()
        engine.close()
        finished(Result(run, cycles))
        if not (interrupted.is_set() or loop.steering.settings.stopping):
            tell(f"the run is over; it can still be seen at {service.url} until Ctrl-C")
            interrupted.wait()
