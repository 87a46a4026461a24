"""A pipeline in the simulator with a service over it, driven by hand: nothing waits for a clock."""

import numpy as np
from starlette.testclient import TestClient

from elastream import Pipeline
from elastream.control import Choices, ControlLoop
from elastream.engines.simulation import SimulationEngine
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS
from elastream.service.access import Access
from elastream.service.api import create_app
from elastream.service.control_api import RunningPipeline
from elastream.service.live import Live
from elastream.workloads.traces import evenly

QUICK = ("basic", "lr", "fft")
TD = 10.0


def same(batch):
    return batch


def topology():
    pipeline = Pipeline("shop")
    orders = pipeline.source("orders")
    pipeline.add(same, name="parse", after=orders, pool=6, execution_time=0.01)
    pipeline.add(same, name="store", after="parse", pool=4, minimum=1, execution_time=0.004)
    return pipeline.topology()


class Stepped:
    """`cycles(n)` lets time pass; `client` asks the service."""

    def __init__(self, access=Access(changes_per_second=1e6), rate=250.0, record=None):  # noqa: B008
        self.engine = SimulationEngine(topology(), evenly(np.full(3_600, rate)))
        self.live = Live(self.engine.topology, self.engine.clock.now, sample=1.0)
        self.engine.watch(self.live.watch)
        models = {name: PREDICTORS[name]() for name in QUICK}
        choices = Choices(
            policies={name: POLICIES[name] for name in ("pa-sps", "presps", "incremental")},
            predictors={name: lambda td, name=name: models[name] for name in models},
            shortest_td=1.0,
        )

        def both(entry):
            self.live.record(entry)
            if record:
                record(entry)

        self.loop = ControlLoop(
            self.engine,
            POLICIES["pa-sps"](),
            models["basic"],
            td=TD,
            choices=choices,
            record=both,
        )
        self.running = RunningPipeline(
            "simulation", self.live, self.loop.steering, look_back=100, health=self.loop.health
        )
        self.app = create_app(models, access=access, running=self.running)
        self.client = TestClient(self.app)

    def cycles(self, count):
        return [self.loop.cycle() for _ in range(count)]

    def get(self, path):
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def active(self):
        return {
            name: of["active"][-1] for name, of in self.get("/api/history")["operators"].items()
        }
