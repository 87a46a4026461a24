"""What if: the replay is of what was recorded, with what was measured."""

from itertools import count

import numpy as np
import pytest

from elastream import Pipeline
from elastream.control import Settings
from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.joining import joined
from elastream.core.service_times import Fixed
from elastream.engines.simulation import SimulationEngine
from elastream.errors import InvalidSettingError, NotReadyError
from elastream.policies import POLICIES
from elastream.policies.static import Static
from elastream.predictors import PREDICTORS
from elastream.service.what_if import Recording, measured_behaviour
from elastream.workloads.traces import evenly
from support.stepped import Stepped

BASIC = PREDICTORS["basic"]()


def branching(when=len):
    """Half of the orders are paid; every order becomes two lines."""
    pipeline = Pipeline("branching")
    orders = pipeline.source("orders")
    pipeline.add(len, name="split", after=orders)
    pipeline.add(len, name="pay", after=())
    pipeline.add(len, name="idle", after=())
    pipeline.connect("split", "pay", when=when)
    pipeline.connect("split", "idle", when=when)
    return pipeline.topology()


@pytest.fixture
def stepped():
    stepped = Stepped()
    stepped.cycles(6)
    return stepped


def recording(stepped):
    return Recording(
        stepped.live.topology, stepped.live.intervals(), stepped.loop.steering.settings, 100
    )


def test_the_same_choice_replays_to_nearly_the_same(stepped):
    sides = recording(stepped).compare(POLICIES["pa-sps"](), BASIC)
    recorded, replayed = sides["recorded"], sides["replayed"]
    assert replayed["replica_seconds"] == recorded["replica_seconds"]
    assert replayed["replicas"] == recorded["replicas"]
    assert replayed["queued"] == pytest.approx(recorded["queued"])
    assert replayed["latency_mean"] == pytest.approx(recorded["latency_mean"], rel=0.1)
    assert recorded["time"] == [10, 20, 30, 40, 50, 60]


def test_another_choice_does_something_else(stepped):
    replayed = recording(stepped).compare(Static(replicas=1), BASIC)["replayed"]
    assert (replayed["policy"], replayed["predictor"]) == ("static", "basic")
    assert replayed["replica_seconds"] == 120
    # One replica carries 100 of the 250 events that come in a second.
    assert replayed["backlog"] == pytest.approx(60 * 150, rel=0.01)


@pytest.mark.parametrize("when", [len, None], ids=["by condition", "named by the function"])
def test_behaviour_is_as_measured(when):
    topology = branching(when)
    real = Behaviour(
        {
            "split": OperatorBehaviour(Fixed(0.002), selectivity=2.0),
            "pay": OperatorBehaviour(Fixed(0.003)),
            "idle": OperatorBehaviour(Fixed(0.1)),
        },
        {("split", "pay"): 0.5, ("split", "idle"): 0.0},
    )
    engine = SimulationEngine(topology, evenly(np.full(20, 50.0)), real)
    parts = []
    for end in (10.0, 20.0):
        engine.clock.sleep_until(end)
        parts.append(engine.observe())
    measured = measured_behaviour(topology, joined(parts, 0))
    assert measured.operators["split"].time.mean == pytest.approx(0.002)
    assert measured.operators["split"].selectivity == pytest.approx(2.0)
    assert measured.operators["pay"].time.mean == pytest.approx(0.003)
    assert measured.splits == {
        ("split", "pay"): pytest.approx(0.5),
        ("split", "idle"): pytest.approx(0.0),
    }


def test_a_replay_that_takes_too_long_is_given_up(stepped):
    ticks = count(step=15.0)
    with pytest.raises(InvalidSettingError, match="takes longer than 20 s"):
        recording(stepped).compare(POLICIES["pa-sps"](), BASIC, now=lambda: next(ticks))


def test_there_must_be_something_to_replay():
    empty = Recording(branching(), (), Settings(policy="pa-sps", predictor="lr", td=1.0), 100)
    with pytest.raises(NotReadyError, match="nothing to replay yet"):
        empty.compare(POLICIES["pa-sps"](), BASIC)


def test_over_the_api(stepped):
    body = {"policy": "presps", "predictor": "lr"}
    answer = stepped.client.post("/api/what-if", json=body)
    assert answer.status_code == 200
    assert answer.json()["recorded"]["policy"] == "pa-sps"
    assert answer.json()["replayed"]["predictor"] == "lr"
    # It only looks.
    assert stepped.get("/api/settings")["policy"] == "pa-sps"
    unknown = stepped.client.post("/api/what-if", json={**body, "policy": "magic"})
    assert unknown.json()["detail"][0]["field"] == "policy"
    assert Stepped().client.post("/api/what-if", json=body).status_code == 409
