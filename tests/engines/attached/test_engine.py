"""An attached query as an engine, without Spark: what it tells the executors' fleet."""

from types import SimpleNamespace

import pytest

from elastream.core.decision import Plan
from elastream.core.health import RUNNING, Health, State
from elastream.engines.attached import engine as module
from elastream.engines.attached.engine import AttachedEngine
from elastream.engines.attached.query import Tasks
from elastream.engines.base import health_of
from elastream.engines.executors.fleet import Fleet
from elastream.errors import InvalidInputError, NotReadyError
from support.micro_batches import VirtualCluster
from support.waiting import eventually


class View:
    """As much of a query as an engine looks at."""

    id, name, running = "1", "orders", True
    trigger_seconds = 10.0
    position = batches_waiting = None

    def __init__(self, session, query):
        pass

    def tasks(self):
        return Tasks(0, 0)


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr(module, "QueryView", View)
    monkeypatch.setattr(module, "Listener", lambda query, told: None)
    streams = SimpleNamespace(addListener=lambda one: None, removeListener=lambda one: None)
    fleet = Fleet(VirtualCluster(lambda: 0.0, 2, 0.0), 1, 8)
    made = AttachedEngine(
        SimpleNamespace(streams=streams), None, fleet, sample=None, objective=10.0, target=0.65
    )
    yield made
    made.close()


def test_what_a_query_that_has_ended_wants_does_not_count_until_it_runs_again(engine):
    engine.apply(Plan({"orders": 5}))
    engine.fleet.want("another", 1)
    assert engine.fleet.target == 6
    engine.view.running = False
    with pytest.raises(NotReadyError, match="not running"):
        engine.observe()
    assert engine.fleet.target == 1
    engine.view.running = True
    engine.observe()
    assert engine.fleet.target == 6


def test_its_health_names_what_keeps_the_query_from_being_scaled(engine):
    assert health_of(engine) == RUNNING
    engine.fleet.problem = "2 of 4 executors are missing"
    assert health_of(engine) == Health(State.DEGRADED, "2 of 4 executors are missing")
    engine.fleet.problem = ""
    engine.view.tasks = lambda: 1 / 0
    eventually(lambda: engine.problem)
    assert health_of(engine).state is State.DEGRADED
    assert "the query cannot be watched now: ZeroDivisionError" in health_of(engine).why


def test_its_health_says_that_it_waits_for_a_query_that_is_not_running(engine):
    engine.view.running = False
    with pytest.raises(NotReadyError):
        engine.observe()
    assert health_of(engine) == Health(State.WAITING, "the query is not running")
    engine.view.running = True
    engine.observe()
    assert health_of(engine) == RUNNING


def test_a_plan_outside_the_bounds_is_refused(engine):
    with pytest.raises(InvalidInputError, match="1 to 8 are allowed"):
        engine.apply(Plan({"orders": 9}))
    assert engine.fleet.target is None


def test_every_plan_is_checked_before_it_counts(engine):
    def refuse():
        raise InvalidInputError("a pipeline scales the executors")

    engine._check = refuse
    with pytest.raises(InvalidInputError, match="a pipeline scales"):
        engine.apply(Plan({"orders": 5}))
    assert engine.fleet.target is None
