"""A simulated run with the service beside it, for tests that look at it from outside."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread

from elastream.control import Choices, ControlLoop
from elastream.control.steering import Steering
from elastream.core.health import Health
from elastream.engines.simulation import PacedClock, SimulationEngine, SimulationSettings
from elastream.errors import RunOverError
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS
from elastream.service.access import Access
from elastream.service.address import Seat
from elastream.service.api import create_app
from elastream.service.control_api import RunningPipeline
from elastream.service.live import Live
from elastream.service.server import listen, serving, url_of
from elastream.workloads import APPLICATIONS, TRACES

SPEED, TD, SAMPLE = 15.0, 5.0, 1.0
TOKENS = {"anna": "correct-horse-battery"}


@dataclass(frozen=True)
class ServedRun:
    """Where it can be seen, its steering, and how its engine says it is."""

    url: str
    live: Live
    steering: Steering
    engine: SimulationEngine

    def report(self, health: Health) -> None:
        """Have the engine say that it is like this."""
        self.engine.health = lambda: health


@contextmanager
def served_run(
    app: str = "twitter",
    port: int = 0,
    tokens: dict[str, str] | None = None,
    readers: dict[str, str] | None = None,
    engine_name: str = "simulation",
    seat: Seat | None = None,
) -> Iterator[ServedRun]:
    """An application that runs, fifteen seconds in one, until the block ends."""
    application, clock = APPLICATIONS[app](), PacedClock(SPEED)
    engine = SimulationEngine(
        application.topology,
        TRACES["spiky"](),
        application.behaviour,
        SimulationSettings(sample=SAMPLE),
        clock,
    )
    live = Live(application.topology, clock.now, SAMPLE)
    engine.watch(live.watch)
    choices = Choices(
        {name: POLICIES[name] for name in ("pa-sps", "incremental", "autoscale+")},
        {name: lambda td, name=name: PREDICTORS[name]() for name in ("basic", "lr")},
        shortest_td=SAMPLE,
    )
    policy, predictor = POLICIES["pa-sps"](), PREDICTORS["lr"]()
    loop = ControlLoop(engine, policy, predictor, td=TD, choices=choices, record=live.record)
    running = RunningPipeline(engine_name, live, loop.steering, 100, loop.health)
    service = create_app(
        {},
        access=Access(tokens or {}, readers or {}, loopback=True),
        running=running,
        runs=seat.address.listed if seat else None,
    )
    if seat:
        url = seat.url
        beside = seat.serving(app, loop.health, service, live.feed.close)
    else:
        listening = listen("127.0.0.1", port)
        url, beside = url_of(listening), serving(service, listening, live.feed.close)
    cycles = Thread(target=lambda: [*loop.run()], daemon=True)
    with beside:
        cycles.start()
        yield ServedRun(url, live, loop.steering, engine)
        with suppress(RunOverError):
            loop.steering.stop("test", drain=False)
        cycles.join()
        engine.close()
