"""Lanes change hands: what waits goes along, and every event comes out once and in order."""

import random
import threading
from contextlib import ExitStack

import pytest

from elastream.core.lanes import lanes_of_keys
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.worker import deployment, member
from elastream.engines.spark.worker.quarantine import DEATHS
from support.waiting import eventually
from support.workers import Workers

LANES = 4
FIRST, SECOND = ("work", 0), ("work", 1)


class Gate:
    """A function that stays inside events with the number 0 until it is let out."""

    def __init__(self):
        self.inside = threading.Event()
        self.open = threading.Event()

    def __call__(self, rows: list):
        if any(row["n"] == 0 for row in rows) and not self.open.is_set():
            self.inside.set()
            self.open.wait(120)
        return rows


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.open.set()


def workers_of(function, **settings):
    pipeline = Pipeline("test")
    pipeline.add(
        function,
        after=pipeline.source("in"),
        name="work",
        pool=2,
        lanes=LANES,
        execution_time=0.02,
        **settings,
    )
    pipeline.add(len, after="work", name="end", pool=1, lanes=1)
    return Workers(pipeline.topology())


def give(workers, *owners):
    """Publish a plan with these owners of the lanes."""
    workers.plan(work=tuple(sorted(set(owners))), end=(0,), owners={"work": owners})


def holders(workers):
    lanes = workers.ledger.totals().lanes["work"]
    return tuple(lanes[lane].owner for lane in range(LANES))


def numbers(workers):
    return [row["n"] for row in workers.rows("end")]


def by_call(function):
    """A plain function that Spark and annotations can look at."""

    def work(rows: list):
        return function(rows)

    return work


def test_a_backlog_moves_with_its_lanes(gate):
    workers = workers_of(by_call(gate))
    give(workers, 0, 0, 0, 0)
    with workers.running(FIRST, SECOND):
        eventually(lambda: holders(workers) == (0, 0, 0, 0))
        workers.put([0], lane=0)
        assert gate.inside.wait(30)
        for lane in range(LANES):
            workers.put([1 + lane] * 10, lane=lane)
        give(workers, 0, 0, 1, 1)
        gate.open.set()
        eventually(lambda: workers.waiting("end") == 41)
        assert holders(workers) == (0, 0, 1, 1)
    assert workers.ledger.counts(FIRST).processed == 21
    assert workers.ledger.counts(SECOND).processed == 20
    assert sorted(numbers(workers)) == [0, *(1 + lane for lane in range(LANES) for _ in range(10))]


def test_suspects_do_not_overtake_what_came_before_them():
    workers = workers_of(by_call(list))
    for number in range(6):
        workers.put([number], lane=0)
    for number in (1, 2, 4):
        workers.backend.state.lanes["work"][0].batches[number].deaths = DEATHS
    give(workers, 0, 0, 0, 0)
    with workers.running(FIRST):
        eventually(lambda: workers.waiting("end") == 6)
    assert numbers(workers) == list(range(6))


def test_every_lane_has_its_own_time_until_it_is_taken_by_force(monkeypatch):
    """A replica that has waited long for one lane leaves the next one its time, too."""
    now = [100.0]
    monkeypatch.setattr(member, "monotonic", lambda: now[0])
    monkeypatch.setattr(deployment, "HAND_OVER_SECONDS", 60.0)
    workers = workers_of(by_call(list))
    workers.joined(FIRST, holding={0, 1})
    second = workers.deployment.member(SECOND, workers.joined(SECOND), workers.generation)

    def after(seconds, *wanted):
        now[0] += seconds
        second.hold(frozenset(wanted))
        return tuple(lane for lane, owner in enumerate(holders(workers)) if owner == 1)

    assert after(0, 0, 2) == (2,)
    assert after(59.5, 0, 1, 2) == (2,)
    assert after(1, 0, 1, 2) == (0, 2), "the first is overdue, the other is not"
    assert after(58, 0, 1, 2) == (0, 2)
    assert after(0.1, 0, 2) == (0, 2), "a plan gives the other to somebody else, and back"
    assert after(59, 0, 1, 2) == (0, 2)
    assert after(59, 0, 1, 2) == (0, 2)
    assert after(2, 0, 1, 2) == (0, 1, 2)


def test_a_lane_is_released_when_the_unit_at_work_is_done(gate, monkeypatch):
    monkeypatch.setattr(deployment, "HAND_OVER_SECONDS", 60.0)
    workers = workers_of(by_call(gate))
    give(workers, 0, 0, 0, 0)
    with workers.running(FIRST, SECOND):
        eventually(lambda: holders(workers) == (0, 0, 0, 0))
        workers.put([0], lane=0)
        workers.put([1, 2, 3], lane=0)
        assert gate.inside.wait(60)
        give(workers, 1, 0, 0, 0)
        assert not eventually_not(lambda: holders(workers)[0] == 1), "not while it works on it"
        gate.open.set()
        eventually(lambda: holders(workers) == (1, 0, 0, 0))
        eventually(lambda: workers.waiting("end") == 4)
    assert numbers(workers) == [0, 1, 2, 3]
    assert workers.ledger.counts(FIRST).processed == 1
    assert workers.ledger.counts(SECOND).processed == 3


def eventually_not(condition, seconds=0.2):
    """Whether it becomes true in a short time."""
    try:
        return eventually(condition, seconds)
    except AssertionError:
        return False


def test_a_lane_that_is_not_released_in_time_is_taken_and_its_unit_is_done_again(gate, monkeypatch):
    monkeypatch.setattr(deployment, "HAND_OVER_SECONDS", 0.1)
    calls = []

    def work(rows: list):
        calls.append([row["n"] for row in rows])
        return gate(rows) if len(calls) == 1 else rows

    workers = workers_of(work)
    give(workers, 0, 0, 0, 0)
    with workers.running(FIRST, SECOND):
        eventually(lambda: holders(workers) == (0, 0, 0, 0))
        workers.put([0], lane=0)
        workers.put([1], lane=0)
        assert gate.inside.wait(60)
        give(workers, 1, 1, 0, 0)
        eventually(lambda: workers.waiting("end") == 2)
        assert holders(workers)[0] == 1
        gate.open.set()
        eventually(lambda: holders(workers) == (1, 1, 0, 0))
        assert not eventually_not(lambda: workers.waiting("end") > 2), "the slow one was refused"
        # It goes on with what is left to it.
        workers.put([2], lane=3)
        eventually(lambda: workers.waiting("end") == 3)
    assert numbers(workers) == [0, 1, 2]
    assert sum(0 in call for call in calls) == 2
    assert workers.ledger.counts(FIRST).processed == 1
    assert workers.ledger.counts(SECOND).processed == 2


def test_order_and_number_hold_per_key_while_plans_and_processes_change():
    keys, events = 7, 600
    choose = random.Random(3)
    workers = workers_of(lambda table: table, grouping="key", key="n")
    give(workers, 0, 0, 1, 1)
    with ExitStack() as running:
        running.enter_context(workers.running(FIRST, SECOND))
        for number in range(events):
            key = number % keys
            workers.put([key], lane=int(lanes_of_keys([key], LANES)[0]), at=[number])
            if number % 30 == 29:
                give(workers, *(choose.randrange(2) for _ in range(LANES)))
            if number == 150:
                # The former process works on without knowing, as one that was stopped for a while.
                running.enter_context(workers.running(choose.choice([FIRST, SECOND])))
            if number in (300, 450):
                workers.next_generation()
                running.enter_context(workers.running(FIRST, SECOND))
        eventually(lambda: workers.waiting("end") == events)
    found = workers.rows("end")
    for key in range(keys):
        assert [row["at"] for row in found if row["n"] == key] == list(range(key, events, keys))
