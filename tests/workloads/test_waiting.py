"""Applications with real events, whose operators wait."""

from types import SimpleNamespace

import numpy as np
import pytest

from elastream.core.behaviour import OperatorBehaviour
from elastream.core.service_times import Fixed
from elastream.workloads.applications import twitter
from elastream.workloads.sensitive import by_value, complex_sensitive
from elastream.workloads.waiting import NumberedEvents, Waiting, waiting_topology


@pytest.fixture
def sleeps(monkeypatch):
    """What was slept; the clock goes on by that, and by 1 ms more. Other threads keep theirs."""
    clock, slept = [0.0], []

    def sleep(seconds):
        slept.append(seconds)
        clock[0] += seconds + 0.001

    virtual = SimpleNamespace(sleep=sleep, perf_counter=lambda: clock[0])
    monkeypatch.setattr("elastream.workloads.waiting.time", virtual)
    return slept


def test_what_was_slept_too_long_is_made_up_for(sleeps):
    wait = Waiting(OperatorBehaviour(Fixed(0.002)), salt=1)
    events = NumberedEvents(None)(0, 10)
    for _ in range(3):
        assert wait(events).equals(events)
    assert sleeps == pytest.approx([0.020, 0.019, 0.019])


def test_values_take_what_they_cost_and_come_as_often_as_they_should(sleeps):
    costs = by_value(0.008)
    events = NumberedEvents(costs)(0, 20_000)
    assert NumberedEvents(costs)(50, 10).equals(events.slice(50, 10))
    assert not NumberedEvents(costs, seed=1)(50, 10).equals(events.slice(50, 10))
    often = np.bincount(events.column("value").to_numpy()) / 20_000
    assert often[0] == pytest.approx(costs.chances[0], abs=0.02)
    Waiting(OperatorBehaviour(costs), salt=1)(events)
    assert sleeps[0] == pytest.approx(20_000 * 0.008, rel=0.05)


def test_as_many_events_come_out_as_the_selectivity_says(sleeps):
    events = NumberedEvents(None)(0, 10_000)
    some = Waiting(OperatorBehaviour(Fixed(1e-6), selectivity=0.3), salt=1)(events)
    again = Waiting(OperatorBehaviour(Fixed(1e-6), selectivity=0.3), salt=2)(some)
    assert some.num_rows == pytest.approx(3_000, rel=0.05)
    assert again.num_rows == pytest.approx(900, rel=0.1)
    more = Waiting(OperatorBehaviour(Fixed(1e-6), selectivity=1.5), salt=3)(events)
    assert more.num_rows == pytest.approx(15_000, rel=0.05)


def test_every_operator_of_an_application_waits():
    for application in (twitter(), complex_sensitive()):
        topology = waiting_topology(application)
        assert [of.name for of in topology.operators] == [
            of.name for of in application.topology.operators
        ]
        assert all(isinstance(of.function, Waiting) for of in topology.operators)
    assert NumberedEvents.of(twitter()).value is None
    assert NumberedEvents.of(complex_sensitive()).value is not None
