"""What if: the replay is of what was recorded, with what was measured."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from elastream import Pipeline
from elastream.control import ControlLoop, Settings
from elastream.control.loop import Cycle, Outcome
from elastream.control.settings import Course
from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.joining import joined
from elastream.core.service_times import Fixed
from elastream.engines.simulation import SimulationEngine, SimulationSettings
from elastream.errors import InvalidSettingError, NotReadyError
from elastream.policies import POLICIES
from elastream.policies.slo import Slo
from elastream.policies.static import Static
from elastream.predictors import PREDICTORS
from elastream.predictors.basic import Basic
from elastream.service import what_if
from elastream.service.live import Live
from elastream.service.what_if import Recording, measured_behaviour
from elastream.workloads.traces import evenly
from support.pipelines import interval
from support.stepped import Stepped, topology

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


def course(policy, predictor=BASIC, td=10.0):
    return Course(Settings(policy=policy.name, predictor=predictor.name, td=td), policy, predictor)


def recording(stepped):
    return Recording(
        stepped.live.topology, stepped.live.intervals(), stepped.loop.steering.settings, 100
    )


def test_the_same_choice_replays_to_nearly_the_same(stepped):
    sides = recording(stepped).compare(course(POLICIES["pa-sps"]()))
    recorded, replayed = sides["recorded"], sides["replayed"]
    assert replayed["replica_seconds"] == recorded["replica_seconds"]
    assert replayed["replicas"] == recorded["replicas"]
    assert replayed["queued"] == pytest.approx(recorded["queued"])
    assert replayed["latency_mean"] == pytest.approx(recorded["latency_mean"], rel=0.1)
    assert recorded["time"] == [10, 20, 30, 40, 50, 60]


def test_another_choice_does_something_else(stepped):
    replayed = recording(stepped).compare(course(Static(replicas=1)))["replayed"]
    assert (replayed["policy"], replayed["predictor"]) == ("static", "basic")
    assert replayed["replica_seconds"] == 120
    # One replica carries 100 of the 250 events that come in a second.
    assert replayed["backlog"] == pytest.approx(60 * 150, rel=0.01)


def fast(policy, seconds=40.0, **settings):
    """What is recorded at a clock of 0.25 s, while the input goes up and down."""
    waves = 300 + 200 * np.sin(np.arange(int(seconds)) * 2 * np.pi / 20)
    conditions = SimulationSettings(step=0.05, **settings)
    engine = SimulationEngine(topology(), evenly(waves), settings=conditions)
    loop = ControlLoop(engine, policy, BASIC, td=0.25)
    stats = [cycle.stats for cycle in loop.run(until=seconds)]
    return Recording(engine.topology, stats, loop.steering.settings, 100)


def test_a_fast_clock_replays_to_the_same():
    sides = fast(Slo(0.5)).compare(course(Slo(0.5), td=0.25))
    recorded, replayed = sides["recorded"], sides["replayed"]
    assert replayed["time"] == recorded["time"]
    assert replayed["replica_seconds"] == pytest.approx(recorded["replica_seconds"], rel=0.05)
    assert replayed["latency_p99"] == pytest.approx(recorded["latency_p99"], rel=0.05)


def test_a_fast_clock_replays_in_steps_that_suit_it():
    sides = fast(Static(replicas=3)).compare(course(Static(replicas=3), td=0.25))
    mean = sides["recorded"]["latency_mean"]
    assert sides["replayed"]["latency_mean"] == pytest.approx(mean, rel=1e-6)


def test_on_a_fast_clock_forecasts_come_from_the_windows_of_the_run():
    class Watching(Basic):
        seen = ()

        def _extrapolate(self, history, horizon):
            self.seen = history
            return super()._extrapolate(history, horizon)

    model = Watching()
    fast(Static(replicas=4)).compare(course(POLICIES["pa-sps"](), model, td=0.25))
    assert len(model.seen) == 40
    assert model.seen.mean() == pytest.approx(300, rel=0.01)


def test_what_sources_held_back_has_arrived_too():
    # One replica carries 100 of the 300 events that come in a second, and 50 may wait for it.
    sides = fast(Static(replicas=1), queue_bound=50.0).compare(course(Static(replicas=1), td=0.25))
    waiting = sides["recorded"]["queued"][-1]
    assert waiting == pytest.approx(40 * 200, rel=0.02)
    assert sides["replayed"]["queued"][-1] == pytest.approx(waiting, rel=0.02)


def test_intervals_of_different_lengths_are_replayed_when_they_were():
    short, long = fast(Static(replicas=4)), recording_of(8, td=10.0)
    mixed = replace(short, intervals=[*short.intervals, *long])
    sides = mixed.compare(course(Static(replicas=1)))
    # In its first 40 s, 300 events come in a second, and in the others 100.
    assert sides["replayed"]["queued"][3] == pytest.approx(40 * 200, rel=0.02)
    assert sides["replayed"]["queued"][-1] == pytest.approx(40 * 200, rel=0.02)


def test_of_many_short_intervals_the_newest_are_replayed(monkeypatch):
    monkeypatch.setattr(what_if, "MOST_CYCLES", 40)
    whole = fast(Static(replicas=4))
    sides = whole.compare(course(Static(replicas=4), td=0.25))
    assert [side["time"][-1] for side in sides.values()] == [10.0, 10.0]
    assert sides["recorded"]["queued"] == whole._side("", "", whole.intervals)["queued"][-40:]
    # A longer interval goes as far back as it takes no more cycles.
    longer = whole.compare(course(Static(replicas=4), td=5.0))
    assert longer["replayed"]["time"][-1] == 40.0


def recording_of(number, td):
    engine = SimulationEngine(topology(), evenly(np.full(int(number * td), 100.0)))
    loop = ControlLoop(engine, Static(replicas=4), BASIC, td=td)
    return [cycle.stats for cycle in loop.run(number)]


def test_an_hour_of_short_intervals_is_kept_without_their_replicas():
    now = [0.0]
    live = Live(topology(), lambda: now[0], sample=1.0)
    for number in range(1_500):
        stats = interval(topology(), 3, number=number, td=0.25)
        live.record(Cycle(0.25 * number, Outcome.UNCHANGED, stats=stats))
    assert len(live.intervals()) == 1_500
    assert not any(of.replicas for part in live.intervals() for of in part.operators.values())
    live.record(Cycle(3_700.0, Outcome.UNCHANGED, stats=interval(topology(), 3)))
    assert len(live.intervals()) == 1_500 - 400 + 1


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
        recording(stepped).compare(course(POLICIES["pa-sps"]()), now=lambda: next(ticks))


def test_there_must_be_something_to_replay():
    empty = Recording(branching(), (), Settings(policy="pa-sps", predictor="lr", td=1.0), 100)
    with pytest.raises(NotReadyError, match="nothing to replay yet"):
        empty.compare(course(POLICIES["pa-sps"]()))


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
