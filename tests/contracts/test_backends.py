"""What every backend must do, whatever is behind it."""

import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.core.groupings.base import ReplicaLoads, SketchReport, SyncReply, SyncRequest
from elastream.core.lanes import lanes_of_keys
from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.board import NO_PLAN, LanePlan
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import SupersededError
from elastream.engines.spark.backends.parcels import Parcel, Requests
from elastream.engines.spark.births import Births
from elastream.engines.spark.worker.execution import events_of
from elastream.errors import InvalidInputError
from support.backends import BACKENDS
from support.waiting import eventually

pytestmark = pytest.mark.quick_on_kafka

PIPELINE = "words: in -> b"
LANES = {"b": OperatorLanes(4), "c": OperatorLanes(4)}
SHARED = {"b": OperatorLanes(4, shared=True), "c": OperatorLanes(4)}


@pytest.fixture(params=BACKENDS)
def backend(request, tmp_path):
    """A backend whose operators `b` and `c` have four lanes each."""
    made = BACKENDS[request.param](tmp_path)
    made.prepare(PIPELINE, LANES)
    yield made
    made.sweep()


@pytest.fixture
def connect(backend):
    """A function that opens one more connection, closed at the end."""
    with ExitStack() as ends:
        yield lambda: ends.enter_context(backend.connect())


@pytest.fixture
def member(connect):
    """A function that lets somebody join, and take hold of some lanes."""

    def join(operator, number=0, holding=(), generation=1):
        end = connect()
        end.lanes.join((operator, number), generation)
        if holding:
            assert end.lanes.hold(frozenset(holding)) == frozenset(holding)
        return end

    return join


@pytest.fixture
def put(member):
    """A function that puts parcels into lanes."""
    producer = member("a")

    def commit(*parcels):
        assert producer.lanes.commit([], parcels, Counts())

    return commit


def parcel(numbers, lane=0, operator="b", born=1.0, **more):
    """Events with these numbers, for one lane."""
    numbers = list(numbers)
    births = Births.evenly(len(numbers), born)
    return Parcel(operator, lane, len(numbers), births, to_bytes(pa.table({"n": numbers})), **more)


def for_lanes(numbers, lane_of, operator="b"):
    """Events with these numbers, each for a lane; each was born at its number."""
    numbers = list(numbers)
    births = Births.joined(Births.evenly(1, float(n)) for n in numbers)
    return Parcel.for_lanes(operator, np.array(lane_of), births, to_bytes(pa.table({"n": numbers})))


def numbers(taken):
    """The numbers of the events that were taken, in their order."""
    return [n for each in taken for n in events_of(each).table["n"].to_pylist()]


def born(taken):
    return [at for each in taken for at in each.births.times().tolist()]


def lengths(end, operator="b"):
    return {lane: n for lane, n in end.lanes.lengths(operator).items() if n}


def finish(end, results=(), most=10_000, shared=False):
    """Take and commit all there is; the numbers in the order in which they were taken."""
    seen = []
    while taken := end.lanes.take(most, shared):
        seen += numbers(taken)
        assert end.lanes.commit(taken, results, Counts(sum(each.events for each in taken)))
        results = ()
    return seen


# The backend itself.


def test_a_backend_is_a_value_that_can_be_sent(backend):
    sent = pickle.loads(pickle.dumps(backend))
    assert sent == backend
    assert sent.url == backend.url
    assert sent.checkpoints == backend.checkpoints


def test_a_folder_is_the_same_for_processes_that_work_elsewhere(tmp_path, monkeypatch):
    """As the executors of a cluster do."""
    monkeypatch.chdir(tmp_path)
    backend = open_backend("state")
    monkeypatch.chdir("/")
    assert backend.url == f"sqlite:{tmp_path}/state"


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_exists_when_a_run_has_used_it(name, tmp_path):
    made = BACKENDS[name](tmp_path)
    assert not made.exists
    made.prepare(PIPELINE, LANES)
    assert made.exists
    assert BACKENDS[name](tmp_path).exists


def test_a_state_belongs_to_one_pipeline(backend):
    backend.prepare(PIPELINE, LANES)
    with pytest.raises(InvalidInputError, match=r"belongs to another pipeline \(words: in -> b"):
        backend.prepare("tweets: in -> store", LANES)


def test_one_driver_owns_a_state_at_a_time_and_another_after_it(backend):
    with backend.own():
        second = backend.own()
        with pytest.raises(InvalidInputError, match=rf"in use by .*{os.getpid()}"):
            second.__enter__()
    with backend.own():
        pass


def test_a_state_that_a_driver_owns_is_not_removed(backend):
    with backend.own():
        for refused in (backend.check_removable, backend.remove):
            with pytest.raises(InvalidInputError, match=r"in use by|is a folder"):
                refused()
    assert backend.layout() == LANES


def test_a_driver_that_fails_owns_nothing_any_more(backend):
    with pytest.raises(ZeroDivisionError), backend.own():
        1 / 0  # noqa: B018
    with backend.own():
        pass


# Lanes: order, and how much is taken.


def test_events_leave_a_lane_in_the_order_in_which_they_came(put, member):
    put(parcel([1, 2]), parcel([3]), parcel([4], lane=1))
    put(parcel([5]))
    assert numbers(member("b", 0, {0}).lanes.take(100)) == [1, 2, 3, 5]
    assert numbers(member("b", 1, {1}).lanes.take(100)) == [4]


def test_what_waits_in_several_lanes_is_taken_oldest_first(put, member):
    for n in range(6):
        put(parcel([n], lane=n % 3))
    assert numbers(member("b", 0, {0, 1, 2}).lanes.take(100)) == list(range(6))


def test_nothing_is_taken_from_lanes_that_are_not_held(put, member):
    put(parcel([1], lane=3))
    assert member("b", 0, {0, 1}).lanes.take(100) == []
    assert member("b", 1).lanes.take(100) == []


def test_at_least_one_event_is_taken_and_about_as_many_as_asked_for(put, member):
    put(*[parcel(range(10))] * 4)
    end = member("b", 0, {0})
    assert [each.events for each in end.lanes.take(29)] == [10, 10]
    assert [each.events for each in end.lanes.take(7)] == [10]
    assert [each.events for each in end.lanes.take(1)] == [1]


def test_a_batch_that_is_much_too_large_is_cut_into_equal_parts(put, member):
    put(parcel(range(100)))
    end = member("b", 0, {0})
    sizes, seen = [], []
    while taken := end.lanes.take(30):
        sizes.append(sum(each.events for each in taken))
        seen += numbers(taken)
        assert end.lanes.commit(taken, [], Counts())
    assert seen == list(range(100))
    assert len(sizes) in (3, 4)
    assert max(sizes) - min(sizes) <= 8


def test_the_rest_of_a_batch_comes_before_what_came_later(put, member):
    put(parcel(range(10)), parcel([10, 11]))
    assert finish(member("b", 0, {0}), most=4) == list(range(12))


def test_who_takes_over_a_lane_goes_on_with_the_rest_of_a_batch(put, member):
    put(parcel(range(10)))
    first = member("b", 0, {0})
    taken = first.lanes.take(5)
    assert first.lanes.commit(taken, [], Counts())
    first.lanes.hold(frozenset())
    assert numbers(taken) + finish(member("b", 1, {0})) == list(range(10))


def test_taking_again_gives_the_same(put, member):
    put(parcel(range(100)), for_lanes(range(100, 104), [0, 1, 0, 1]))
    end = member("b", 0, {0, 1})
    first, again = end.lanes.take(40), end.lanes.take(40)
    assert numbers(first) == numbers(again)
    assert [each.places for each in first] == [each.places for each in again]


def test_events_keep_their_births_however_they_are_cut(put, member):
    stored = Births.joined([Births.evenly(4, 10.0, 13.0), Births.evenly(3, 20.0)])
    put(parcel(range(7))._replace(births=stored))
    end = member("b", 0, {0})
    seen = []
    while taken := end.lanes.take(2):
        seen += born(taken)
        end.lanes.commit(taken, [], Counts())
    assert seen == [10.0, 11.0, 12.0, 13.0, 20.0, 20.0, 20.0]


def test_a_parcel_for_several_lanes_is_shared_by_their_owners(put, member):
    put(for_lanes(range(8), [0, 1, 2, 0, 1, 2, 0, 3]), parcel([8], lane=1))
    first, second = member("b", 0, {0, 2}), member("b", 1, {1, 3})
    mine, theirs = first.lanes.take(100), second.lanes.take(100)
    assert sorted(numbers(mine)) == [0, 2, 3, 5, 6]
    assert sorted(numbers(theirs)) == [1, 4, 7, 8]
    assert [n for n in numbers(mine) if n % 3 == 0] == [0, 3, 6]
    assert [n for n in numbers(theirs) if n in (1, 4, 8)] == [1, 4, 8]
    assert born(mine) == [float(n) for n in numbers(mine)]
    assert first.lanes.commit(mine, [], Counts())
    assert sorted(numbers(second.lanes.take(100))) == [1, 4, 7, 8]
    assert second.lanes.commit(theirs, [], Counts())
    assert lengths(first) == {}


def test_requests_travel_with_their_events(put, member):
    asked = Requests(("a", 0), (SyncRequest(3, 0, round_number=2, estimate=1.5),))
    put(parcel(range(4), requests=asked), parcel([4]))
    with_it, without = member("b", 0, {0}).lanes.take(100)
    assert with_it.requests == asked
    assert without.requests is None


BATCHES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=8)


@pytest.mark.parametrize(
    "name",
    [each if each != "kafka" else pytest.param(each, marks=pytest.mark.long) for each in BACKENDS],
)
@settings(max_examples=30)
@given(batches=BATCHES, most=st.integers(1, 15), split=st.integers(0, 15))
def test_every_event_leaves_once_and_each_lane_in_order(
    name, tmp_path_factory, batches, most, split
):
    backend = BACKENDS[name](tmp_path_factory.mktemp("lanes"))
    backend.prepare(PIPELINE, LANES)
    first_number, put_in = 0, {lane: [] for lane in range(4)}
    with backend.connect() as producer:
        producer.lanes.join(("a", 0), 1)
        for lane_of in batches:
            events = range(first_number, first_number + len(lane_of))
            for n, lane in zip(events, lane_of, strict=True):
                put_in[lane].append(n)
            producer.lanes.commit([], [for_lanes(events, lane_of)], Counts())
            first_number += len(lane_of)
    lane_of_number = {n: lane for lane, of in put_in.items() for n in of}
    seen = []
    for replica in range(2):
        mine = frozenset(lane for lane in range(4) if split >> lane & 1 == replica)
        with backend.connect() as end:
            end.lanes.join(("b", replica), 1)
            end.lanes.hold(mine)
            while taken := end.lanes.take(most):
                assert sum(each.events for each in taken) <= max(1.5 * most, 1)
                assert born(taken) == [float(n) for n in numbers(taken)]
                seen += numbers(taken)
                assert end.lanes.commit(taken, [], Counts())
    assert sorted(seen) == list(range(first_number))
    for lane, expected in put_in.items():
        assert [n for n in seen if lane_of_number[n] == lane] == expected
    backend.sweep()


# Commits.


def test_events_stay_until_their_results_are_committed(put, member):
    put(parcel(range(10)))
    end = member("b", 0, {0})
    taken = end.lanes.take(100)
    assert numbers(end.lanes.take(100)) == numbers(taken)
    assert end.lanes.commit(taken, [parcel(range(10), operator="c")], Counts(processed=10))
    assert end.lanes.take(100) == []
    assert numbers(member("c", 0, {0}).lanes.take(100)) == list(range(10))


@pytest.mark.parametrize("events", [3, 20_000])
def test_what_is_passed_on_as_it_came_is_there_for_all_its_successors(
    backend, put, member, connect, events
):
    """However large it is, whoever is done first, and after a commit that was refused."""
    put(parcel(range(events)), for_lanes(range(4), [0, 1, 0, 1]))

    def passed_on(taken):
        return [
            Parcel(operator, each.places[0].lane, each.events, each.births, data)
            for each in taken
            for data in [to_bytes(events_of(each).table)]
            for operator in ("b", "c")
        ]

    slow = member("b", 0, {0, 1})
    taken = slow.lanes.take(100_000)
    quick = member("b", 0)
    assert not slow.lanes.commit(taken, passed_on(taken), Counts())
    taken = quick.lanes.take(100_000)
    assert quick.lanes.commit(taken, passed_on(taken), Counts())
    assert backend.clear("b") == events + 4
    assert sorted(finish(member("c", 0, {0, 1}))) == sorted([*range(events), *range(4)])
    assert lengths(connect(), "b") == lengths(connect(), "c") == {}


def refused(end, taken):
    """Try to commit with everything that a commit can do; nothing of it may happen."""
    letter = DeadLetter("b", 1, "ValueError", to_bytes(pa.table({"n": [0]})))
    before = end.ledger.totals()
    assert not end.lanes.commit(
        taken, [parcel([1], operator="c")], Counts(processed=1, sent={"c": 1}), [letter]
    )
    assert end.ledger.totals() == before
    assert list(end.dead_letters.read()) == []


def test_who_was_replaced_cannot_commit(put, member):
    put(parcel(range(10)))
    slow = member("b", 0, {0})
    taken = slow.lanes.take(100)
    quick = member("b", 0)
    assert (slow.lanes.joined(), quick.lanes.joined()) == (False, True)
    refused(slow, taken)
    assert finish(quick) == list(range(10))
    assert quick.ledger.counts(("b", 0)).processed == 10


def test_a_source_that_was_replaced_cannot_commit(member):
    slow, _ = member("a"), member("a")
    refused(slow, [])


def test_who_has_lost_one_of_its_lanes_cannot_commit_anything(put, member):
    put(for_lanes(range(4), [0, 1, 0, 1]))
    slow, quick = member("b", 0, {0, 1}), member("b", 1)
    taken = slow.lanes.take(100)
    assert quick.lanes.hold(frozenset({1}), by_force=frozenset({1})) == {1}
    refused(slow, taken)
    assert slow.lanes.hold(frozenset({0})) == {0}
    assert sorted(finish(slow) + finish(quick)) == [0, 1, 2, 3]


def test_who_was_dismissed_cannot_commit(put, member, connect):
    put(parcel([1]))
    end = member("b", 0, {0})
    taken = end.lanes.take(100)
    connect().board.dismiss([("b", 0)])
    assert not end.lanes.joined()
    refused(end, taken)


# Ownership.


def test_a_lane_has_one_holder_until_it_is_released(member):
    first, second = member("b", 0, {0, 1}), member("b", 1)
    assert second.lanes.hold(frozenset({1, 2})) == {2}
    assert first.lanes.hold(frozenset({0})) == {0}
    assert second.lanes.hold(frozenset({1, 2})) == {1, 2}
    owners = {lane: of.owner for lane, of in first.ledger.totals().lanes["b"].items()}
    assert owners == {0: 0, 1: 1, 2: 1, 3: None}


def test_a_lane_that_is_not_released_can_be_taken_by_force(put, member):
    put(parcel([1], lane=1))
    first, second = member("b", 0, {0, 1}), member("b", 1)
    taken = first.lanes.take(100)
    assert second.lanes.hold(frozenset({1})) == frozenset()
    assert second.lanes.hold(frozenset({1}), by_force=frozenset({1})) == {1}
    assert not first.lanes.commit(taken, [], Counts())
    assert first.lanes.take(100) == []
    # Now it knows, and can release what it has lost without harm.
    assert first.lanes.hold(frozenset({0})) == {0}
    assert finish(second) == [1]


def test_only_the_lanes_that_are_named_are_taken_by_force(put, member):
    put(parcel([1]), parcel([2], lane=1))
    first, second = member("b", 0, {0, 1}), member("b", 1)
    wanted = frozenset({0, 1, 2})
    assert second.lanes.hold(wanted, by_force=frozenset({1})) == {1, 2}
    assert first.lanes.hold(frozenset({0})) == {0}
    assert (finish(first), finish(second)) == ([1], [2])


def test_a_lane_that_was_taken_by_force_and_released_is_asked_for_again(put, member):
    """A member that is stopped for a while misses plans: one took the lane, the next gives it back.

    It must not go on as if the lane had been its own all the time: nobody would have hold of it.
    """
    put(parcel([1]), parcel([2], lane=1))
    stopped, other = member("b", 0, {0, 1}), member("b", 1)
    other.lanes.hold(frozenset({1}), by_force=frozenset({1}))
    assert stopped.lanes.joined()
    assert stopped.lanes.hold(frozenset({0, 1})) == {0}
    other.lanes.hold(frozenset())
    assert stopped.lanes.hold(frozenset({0, 1})) == {0, 1}
    assert finish(stopped) == [1, 2]


def test_releasing_a_lane_that_another_has_taken_by_force_leaves_it_there(put, member):
    put(parcel([1]))
    first, second = member("b", 0, {0}), member("b", 1)
    second.lanes.hold(frozenset({0}), by_force=frozenset({0}))
    first.lanes.hold(frozenset())
    assert finish(second) == [1]


def test_a_lane_that_was_lost_and_came_back_does_not_let_old_work_in(put, member):
    put(parcel([1]))
    first, second = member("b", 0, {0}), member("b", 1)
    taken = first.lanes.take(100)
    second.lanes.hold(frozenset({0}), by_force=frozenset({0}))
    second.lanes.hold(frozenset())
    assert not first.lanes.commit(taken, [], Counts())
    assert first.lanes.hold(frozenset({0})) == {0}
    assert finish(first) == [1]


def test_whoever_joins_in_ones_place_has_its_lanes(put, member):
    put(parcel([1], lane=2))
    member("b", 0, {1, 2})
    again = member("b", 0)
    assert numbers(again.lanes.take(100)) == [1]
    assert again.lanes.hold(frozenset({2})) == {2}
    assert member("b", 1).lanes.hold(frozenset({1, 2})) == {1}


def test_who_is_of_an_earlier_generation_cannot_come_back(member):
    for generation in (1, 2, 2):
        newest = member("b", generation=generation)
    with pytest.raises(SupersededError):
        member("b", generation=1)
    assert newest.lanes.joined()
    assert newest.board.members()["b", 0].generation == 2


def test_one_connection_can_act_for_one_member_after_the_other(put, connect):
    put(parcel([1]), parcel([2], operator="c"))
    end = connect()
    end.lanes.join(("b", 0), 1)
    end.lanes.hold(frozenset({0}))
    end.board.dismiss([("b", 0)])
    end.lanes.join(("c", 3), 1)
    assert end.lanes.take(100) == []
    end.lanes.hold(frozenset({0}))
    assert finish(end) == [2]
    assert set(end.board.members()) == {("a", 0), ("c", 3)}


# Units with names.


def units(taken):
    return [(each.unit.name, numbers([each])) for each in taken]


def test_a_unit_keeps_its_name_and_its_events_whoever_takes_it_however_often(put, member):
    put(parcel(range(100), 0), parcel(range(100, 103), 1))
    first = member("b", 0, {0, 1})
    began = first.lanes.take(10, named=True)
    assert [each.unit.attempt for each in began] == [1]
    again = first.lanes.take(40, named=True)
    assert units(again)[: len(began)] == units(began)
    second = member("b", 1)
    second.lanes.hold(frozenset({0, 1}), by_force=frozenset({0, 1}))
    others = second.lanes.take(1000, named=True)
    assert units(others)[:1] == units(began)
    assert others[0].unit.attempt == 3
    assert not first.lanes.commit(began, (), Counts())
    assert second.lanes.commit(others, (), Counts())
    rest = second.lanes.take(1000, named=True)
    assert rest[0].unit.attempt == 1
    assert sorted(numbers(others) + numbers(rest)) == list(range(103))
    assert not {name for name, _ in units(others)} & {name for name, _ in units(rest)}


def test_a_unit_is_of_one_lane_alone(put, member):
    put(for_lanes(range(9), [0, 1, 2] * 3))
    taken = member("b", 0, {0, 1, 2}).lanes.take(1000, named=True)
    assert [numbers([each]) for each in taken] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert {len(each.places) for each in taken} == {1}
    assert [each.births.times().tolist() for each in taken][1] == [1.0, 4.0, 7.0]
    assert len({each.unit.name for each in taken}) == 3


def test_what_follows_a_part_that_nobody_named_gets_a_name_of_its_own(put, member):
    put(parcel(range(100)))
    end = member("b", 0, {0})
    (named,) = end.lanes.take(10, named=True)
    (part,) = end.lanes.take(10)
    assert end.lanes.commit([part], (), Counts())
    (rest,) = end.lanes.take(10, named=True)
    assert (rest.unit.attempt, numbers([rest])[0]) == (1, 10)
    assert rest.unit.name != named.unit.name


def test_names_never_come_again(put, member):
    """Also when a lane was empty in between, and its numbers begin anew."""
    end, seen = member("b", 0, {0}), []
    for _ in range(3):
        put(parcel(range(5)))
        taken = end.lanes.take(100, named=True)
        seen += [each.unit.name for each in taken]
        assert end.lanes.commit(taken, (), Counts())
    assert len(set(seen)) == 3


def test_a_unit_of_the_shared_lane_keeps_its_name_when_its_taker_goes(backend, put, member):
    backend.prepare(PIPELINE, SHARED)
    put(parcel(range(5), SHARED_LANE), parcel(range(5, 8), SHARED_LANE))
    taken = member("b", 0).lanes.take(100, shared=True, named=True)
    assert [each.unit.attempt for each in taken] == [1, 1]
    again = member("b", 0, generation=2).lanes.take(100, shared=True, named=True)
    assert units(again) == units(taken)
    assert [each.unit.attempt for each in again] == [2, 2]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_is_taken_and_committed_a_name_stands_for_the_same_events(data):
    """And every event is committed under one name."""
    with tempfile.TemporaryDirectory() as folder:
        kind = data.draw(st.sampled_from(["sqlite", "memory"]))
        choose = random.Random(data.draw(st.integers(0, 1000)))
        backend = BACKENDS[kind](Path(folder))
        backend.prepare(PIPELINE, LANES)
        with ExitStack() as ends:
            producer = ends.enter_context(backend.connect())
            producer.lanes.join(("a", 0), 1)
            sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=6))
            first = 0
            for size in sizes:
                lane_of = [choose.randrange(4) for _ in range(size)]
                parcels = [for_lanes(range(first, first + size), lane_of)]
                assert producer.lanes.commit([], parcels, Counts())
                first += size
            takers = [ends.enter_context(backend.connect()) for _ in range(2)]
            for number, taker in enumerate(takers):
                taker.lanes.join(("b", number), 1)
            means, done = {}, []
            abandoned = data.draw(st.lists(st.booleans(), max_size=10))
            while len(done) < sum(sizes):
                taker = choose.choice(takers)
                taker.lanes.hold(frozenset(range(4)), by_force=frozenset(range(4)))
                taken = taker.lanes.take(choose.randint(1, 50), named=True)
                for name, events in units(taken):
                    assert means.setdefault(name, events) == events
                if not (abandoned and abandoned.pop()):
                    assert taker.lanes.commit(taken, (), Counts())
                    done += numbers(taken)
            assert sorted(done) == list(range(sum(sizes)))
        backend.sweep()


def test_what_was_sent_counts_only_where_it_was_committed(put, member):
    put(parcel(range(3)), parcel(range(3, 6), 1))
    slow = member("b", 0, {0})
    sent = Counts(processed=3, emitted=3, sent={"c": 3}, lost={"c": 1})
    assert slow.lanes.commit([], [], Counts(sent={"c": 10}))
    taken = slow.lanes.take(10)
    quick = member("b", 0, {0, 1})
    assert not slow.lanes.commit(taken, [], sent)
    for _ in range(2):
        assert quick.lanes.commit(quick.lanes.take(3), [], sent)
    counts = quick.ledger.totals().counts["b", 0]
    assert (counts.processed, counts.sent, counts.lost) == (6, {"c": 16}, {"c": 2})


# The shared lane.


@pytest.fixture
def shared(backend):
    backend.prepare(PIPELINE, SHARED)
    return backend


def test_events_of_the_shared_lane_are_taken_by_one_only(shared, put, member):
    put(*[parcel(range(n, n + 10), SHARED_LANE) for n in (0, 10, 20)])
    first, second = member("b", 0), member("b", 1)
    mine, theirs = first.lanes.take(20, shared=True), second.lanes.take(100, shared=True)
    assert numbers(mine) == list(range(20))
    assert numbers(theirs) == list(range(20, 30))
    assert first.lanes.take(100, shared=True) == []
    assert first.lanes.commit(mine, [], Counts())
    assert second.lanes.commit(theirs, [], Counts())
    assert lengths(first) == {}


@pytest.mark.parametrize("how", ["replaced", "dismissed"])
def test_what_was_taken_from_the_shared_lane_is_free_when_its_taker_goes(shared, put, member, how):
    put(parcel(range(10), SHARED_LANE))
    slow, other = member("b", 0), member("b", 1)
    taken = slow.lanes.take(100, shared=True)
    assert other.lanes.take(100, shared=True) == []
    if how == "replaced":
        member("b", 0)
    else:
        other.board.dismiss([("b", 0)])
    again = other.lanes.take(100, shared=True)
    assert numbers(again) == list(range(10))
    refused(slow, taken)
    assert other.lanes.commit(again, [], Counts())


def test_one_that_was_replaced_takes_nothing_from_the_shared_lane(shared, put, member):
    zombie = member("b", 0)
    now = member("b", 0, generation=2)
    put(parcel(range(10), SHARED_LANE))
    assert zombie.lanes.take(100, shared=True) == [], "if it ended now, nobody would free it"
    assert numbers(now.lanes.take(100, shared=True)) == list(range(10))


def test_a_large_batch_of_the_shared_lane_is_done_once_whether_it_is_cut_or_not(
    shared, put, member
):
    put(parcel(range(100), SHARED_LANE))
    end = member("b", 0)
    assert end.lanes.take(10, shared=True)
    assert finish(member("b", 0), most=10, shared=True) == list(range(100))


# Processes that die.


def test_who_joins_in_the_place_of_one_that_died_is_told_what_that_may_have_worked_on(put, member):
    put(parcel([1]), parcel([2], lane=1), parcel([3], lane=2))
    member("b", 1, {2})
    member("b", 0, {0, 1})
    for deaths in (1, 2, 3):
        taken = member("b", 0).lanes.take(100)
        assert [each.deaths for each in taken] == [deaths] * 2
    assert [each.deaths for each in member("b", 1, generation=2).lanes.take(100)] == [0]


def test_nobody_has_died_when_the_next_generation_takes_over_or_somebody_was_dismissed(
    put, member, connect
):
    put(parcel([1]))
    member("b", 0, {0})
    assert [each.deaths for each in member("b", 0, generation=2).lanes.take(100)] == [0]
    connect().board.dismiss()
    assert [each.deaths for each in member("b", 0, {0}, generation=2).lanes.take(100)] == [0]


def test_deaths_are_noted_on_what_was_taken_from_the_shared_lane(shared, put, member):
    put(parcel([1], SHARED_LANE))
    for deaths in range(3):
        (taken,) = member("b", 0).lanes.take(100, shared=True)
        assert taken.deaths == deaths
    (again,) = member("b", 0, generation=2).lanes.take(100, shared=True)
    assert again.deaths == 2


def test_a_death_that_is_reported_is_noted_and_the_lanes_are_free(put, member, connect):
    """As when a whole executor has died: nobody joins in the same place."""
    put(parcel([1]), parcel([2], lane=1), parcel([3], lane=2))
    dead, other = member("b", 0, {0, 1}), member("b", 1, {2})
    board = connect().board
    taken = dead.lanes.take(100)
    board.report_deaths({("b", 0): board.members()["b", 0].process, ("b", 7): "nobody"})
    assert ("b", 0) not in board.members()
    refused(dead, taken)
    other.lanes.hold(frozenset({0, 1, 2}))
    deaths = {tuple(numbers([each])): each.deaths for each in other.lanes.take(100)}
    assert deaths == {(1,): 1, (2,): 1, (3,): 0}
    assert member("b", 0, generation=1).lanes.joined()


def test_a_death_counts_once_also_when_somebody_has_joined_before_it_is_reported(
    put, member, connect
):
    put(parcel([1]))
    member("b", 0, {0})
    board = connect().board
    process = board.members()["b", 0].process
    successor = member("b", 0)
    board.report_deaths({("b", 0): process})
    assert successor.lanes.joined()
    assert [each.deaths for each in successor.lanes.take(100)] == [1]
    assert successor.lanes.commit(successor.lanes.take(100), [], Counts())


def test_a_death_that_is_reported_is_noted_on_what_was_taken_from_the_shared_lane(
    shared, put, member, connect
):
    put(parcel([1], SHARED_LANE), parcel([2], SHARED_LANE))
    dead, other, board = member("b", 0), member("b", 1), connect().board
    (taken,) = dead.lanes.take(1, shared=True)
    board.report_deaths({("b", 0): board.members()["b", 0].process})
    refused(dead, [taken])
    assert [(numbers([each]), each.deaths) for each in other.lanes.take(9, shared=True)] == [
        ([1], 1),
        ([2], 0),
    ]


# What is counted.


def test_what_waits_is_known_by_lane(put, member):
    put(parcel(range(3)), parcel(range(4), lane=1), parcel(range(5), operator="c"))
    put(for_lanes(range(3), [1, 2, 2]))
    end = member("b", 0, {1})
    assert lengths(end) == {0: 3, 1: 5, 2: 2}
    assert lengths(end, "c") == {0: 5}
    assert lengths(end, "nobody") == {}
    taken = end.lanes.take(4)
    end.lanes.commit(taken, [], Counts())
    totals = end.ledger.totals()
    assert (totals.waiting("b"), totals.waiting("c"), totals.waiting("nobody")) == (6, 5, 0)
    lane = totals.lanes["b"][1]
    assert (lane.arrived, lane.waiting, lane.owner) == (5, 1, 0)
    assert totals.lanes["b"][2].owner is None
    assert end.ledger.lanes() == totals.lanes


def test_a_replica_is_busy_until_what_it_works_on_is_done(member):
    end, producer = member("b", 0, {1}), member("a")

    def busy():
        lengths(producer)  # It may know no more than what was read, and this reads to the end.
        return producer.lanes.busy(("b", 0))

    assert not busy()
    assert producer.lanes.commit([], [parcel(range(3), lane=1)], Counts())
    assert busy()
    taken = end.lanes.take(9)
    assert busy()
    assert end.lanes.commit(taken, [parcel(range(3), lane=2)], Counts())
    end.lanes.wait(0.0)
    assert not busy()


def test_counts_add_up(member, connect):
    latency = LatencyHistogram.of([0.1, 0.1, 3.0])
    counted = Counts(10, 8, 1, 0.5, 0.25, {"c": 5, "d": 3}, {"d": 2}, latency)
    end = member("b")
    for _ in range(2):
        assert end.lanes.commit([], [], counted)
    counts = connect().ledger.totals().counts["b", 0]
    assert counts[:5] == (20, 16, 2, 1.0, 0.5)
    assert counts.sent == {"c": 10, "d": 6}
    assert {name: n for name, n in counts.lost.items() if n} == {"d": 4}
    assert dict(counts.latency.bins) == {bin_: 2 * n for bin_, n in latency.bins.items()}
    assert connect().ledger.counts(("b", 0))[:5] == counts[:5]
    assert connect().ledger.counts(("b", 7))[:5] == (0, 0, 0, 0, 0)


def test_everything_outlives_its_connections(backend):
    with backend.connect() as end:
        end.lanes.join(("a", 0), 1)
        end.lanes.commit([], [parcel([1])], Counts(processed=7))
    with backend.connect() as end:
        assert lengths(end) == {0: 1}
        assert end.ledger.counts(("a", 0)).processed == 7


# The board: plans.


def test_the_newest_plan_is_the_one_that_everybody_sees(connect):
    first, second = connect().board, connect().board
    assert second.plan() is NO_PLAN
    first.publish(LanePlan({"b": (0, 2)}, {"b": (0, 0, 2, 2)}))
    before = second.plan()
    assert (before.active, before.owners) == ({"b": (0, 2)}, {"b": (0, 0, 2, 2)})
    assert before.lanes(("b", 2)) == {2, 3}
    assert second.plan(before) is before
    first.publish(LanePlan({"b": (0,)}, {"b": (0, 0, 0, 0)}, admits=False, halted=True))
    after = second.plan(before)
    assert (after.active, after.admits) == ({"b": (0,)}, False)
    assert after.version > before.version > NO_PLAN.version


# The board: generations and roles.

ROLES = [("a", 0), ("b", 0), ("c", 0), ("b", 1)]


def test_generations_have_numbers_that_grow_by_one(connect):
    board = connect().board
    first = board.new_generation(ROLES)
    assert [board.new_generation(ROLES) for _ in range(2)] == [first + 1, first + 2]
    board.dismiss()
    assert connect().board.new_generation(ROLES) == first + 3


def test_workers_get_the_most_important_roles_and_always_the_same(connect):
    board = connect().board
    generation = board.new_generation(ROLES)
    assert [board.take_role(generation, worker) for worker in (5, 2, 5, 9)] == [
        ("a", 0), ("b", 0), ("a", 0), ("c", 0),
    ]  # fmt: skip
    assert connect().board.take_role(generation, 7) == ("b", 1)
    assert board.take_role(generation, 8) is None
    assert board.take_role(generation + 1, 5) is None


def test_a_generation_begins_when_it_is_started_and_the_one_before_loses_its_roles(connect):
    board, other = connect().board, connect().board
    old = board.new_generation(ROLES)
    for worker in range(4):
        board.report_ready(old, board.take_role(old, worker))
    assert other.ready(old) == set(ROLES)
    assert board.may_begin(old, ("b", 0)) is False
    other.start(old)
    assert board.may_begin(old, ("b", 0)) is True
    new = board.new_generation(ROLES)
    board.report_ready(new, board.take_role(new, 0))
    assert other.ready(new) == {("a", 0)}
    assert (board.may_begin(old, ("b", 0)), board.may_begin(new, ("b", 0))) == (True, False)
    other.start(new)
    assert (board.may_begin(old, ("b", 0)), board.may_begin(new, ("b", 0))) == (None, True)
    assert board.take_role(old, 0) is None


def test_the_roles_of_an_abandoned_generation_are_gone(connect):
    board = connect().board
    running, failed = board.new_generation(ROLES), board.new_generation(ROLES)
    board.start(running)
    abandoned = board.new_generation(ROLES)
    board.abandon(abandoned)
    for generation in (abandoned, failed):
        assert board.may_begin(generation, ("b", 0)) is None
        assert board.take_role(generation, 1) is None
        board.report_ready(generation, ("b", 0))
        assert board.ready(generation) == frozenset()
    assert board.may_begin(running, ("b", 0)) is True


def test_a_worker_can_be_given_another_role(connect, member, put):
    board = connect().board
    generation = board.new_generation(ROLES)
    for worker in range(3):
        board.take_role(generation, worker)
    board.start(generation)
    put(parcel([1], operator="c"))
    leaving = member("c", 0, {0}, generation)
    taken = leaving.lanes.take(100)
    assert not board.reassign(("c", 0), ("b", 0)), "somebody has it"
    assert not board.reassign(("b", 1), ("c", 0)), "nobody has it"
    assert board.reassign(("c", 0), ("b", 1))
    assert not leaving.lanes.joined()
    assert not leaving.lanes.commit(taken, [], Counts())
    assert ("c", 0) not in board.members()
    assert board.take_role(generation, 2) == ("b", 1)
    assert board.take_role(generation, 3) == ("c", 0)
    assert finish(member("c", 0, {0}, generation)) == [1]


def test_roles_say_which_worker_has_each_of_the_running_generation(connect):
    board = connect().board
    assert board.roles() == {}
    running = board.new_generation(ROLES)
    board.take_role(running, 5)
    board.start(running)
    later = board.new_generation(ROLES)
    board.take_role(later, 8)
    assert list(connect().board.roles().items()) == list(
        zip(ROLES, (5, None, None, None), strict=True)
    )


def test_a_role_that_is_vacated_can_be_given_to_another_worker(connect, member, put):
    """As when its worker's executor has died: its task waits for another one."""
    board = connect().board
    generation = board.new_generation(ROLES)
    for worker in range(4):
        board.report_ready(generation, board.take_role(generation, worker))
    board.start(generation)
    put(parcel([1], lane=2))
    gone = member("b", 0, {2}, generation)
    taken = gone.lanes.take(100)
    board.vacate([("b", 0), ("b", 1)])
    assert board.roles() == dict(zip(ROLES, (0, None, 2, None), strict=True))
    assert board.ready(generation) == {("a", 0), ("c", 0)}
    assert not gone.lanes.joined()
    assert not gone.lanes.commit(taken, [], Counts())
    assert board.reassign(("c", 0), ("b", 0))
    assert board.take_role(generation, 1) == ("c", 0), "it comes back"
    assert board.take_role(generation, 3) == ("b", 1)
    assert finish(member("b", 0, {2}, generation)) == [1]


# The board: members and failures.


def test_members_say_who_they_are_and_that_they_are_well(member, connect):
    member("b", 1, generation=3)
    board = connect().board
    before = board.members()["b", 1]
    assert (before.pid, before.generation) == (os.getpid(), 3)
    board.beat(("b", 1), busy_for=2.5)
    after = board.members()["b", 1]
    assert after.heartbeat > before.heartbeat
    assert after.busy_for == 2.5
    board.beat(("nobody", 0))
    assert set(board.members()) == {("b", 1)}


def test_whoever_joins_next_is_another_process(member, connect):
    first = member("b").board.members()["b", 0].process
    assert member("b").board.members()["b", 0].process != first


def test_lanes_of_who_is_dismissed_are_free(put, member, connect):
    put(parcel([1], lane=1))
    gone, stays = member("b", 0, {0, 1}), member("b", 1, {2})
    connect().board.dismiss([("b", 0)])
    assert (gone.lanes.joined(), stays.lanes.joined()) == (False, True)
    assert stays.lanes.hold(frozenset({1, 2})) == {1, 2}
    assert finish(stays) == [1]


def test_failures_are_known_until_their_member_joins_again(member, connect):
    board = connect().board
    board.start(board.new_generation(ROLES))
    board.report_failure(1, ("b", 0), "no database today")
    board.report_failure(1, ("b", 1), "not today")
    board.report_failure(1, ("b", 1), "not this week")
    assert connect().board.failures() == {
        ("b", 0): "no database today", ("b", 1): "not this week",
    }  # fmt: skip
    member("b", 1)
    assert board.failures() == {("b", 0): "no database today"}


def test_a_generation_that_could_not_start_leaves_no_failure_behind(member, connect):
    board = connect().board
    old, new = board.new_generation(ROLES), board.new_generation(ROLES)
    board.start(old)
    board.report_failure(old, ("b", 1), "not this event")
    board.report_failure(new, ("b", 0), "no database today")
    assert board.failures() == board.failures(old) == {("b", 1): "not this event"}
    assert board.failures(new) == {("b", 0): "no database today"}
    board.abandon(new)
    assert board.failures(new) == {}
    assert board.failures() == {("b", 1): "not this event"}
    later = board.new_generation(ROLES)
    board.start(later)
    assert board.failures(old) == board.failures() == {}


def test_who_takes_over_dismisses_everybody_and_forgets_roles_and_failures(member, connect):
    left = member("b", 0, {0})
    board = connect().board
    generation = board.new_generation(ROLES)
    board.start(generation)
    board.report_failure(generation, ("c", 0), "no database today")
    board.dismiss([("a", 0)])
    assert (left.lanes.joined(), len(board.failures())) == (True, 1)
    board.dismiss()
    assert not left.lanes.joined()
    assert board.members() == board.failures() == {}
    assert board.take_role(generation, 0) is None
    assert member("b", 1).lanes.hold(frozenset({0})) == {0}


# The board: feedback.


def heard(board, producer, after=0, operators=("b",)):
    after, news = board.feedback(producer, operators, after)
    return after, sorted(news, key=str)


def test_producers_are_told_the_newest_of_every_sender_once(connect):
    board, first, second = (connect().board for _ in range(3))
    first.post(("b", 0), SyncReply(0, round_number=1, difference=0.5), [("a", 0), ("a", 1)])
    first.post(("b", 0), SyncReply(0, round_number=2, difference=0.25), [("a", 0)])
    second.post(("b", 1), SyncReply(1, round_number=1, difference=0.125), [("a", 0)])
    after, news = heard(board, ("a", 0))
    assert news == [
        ("b", SyncReply(0, round_number=2, difference=0.25)),
        ("b", SyncReply(1, round_number=1, difference=0.125)),
    ]
    assert heard(board, ("a", 0), after) == (after, [])
    assert heard(board, ("a", 1))[1] == [("b", SyncReply(0, round_number=1, difference=0.5))]
    assert heard(board, ("a", 2)) == (0, [])
    assert heard(board, ("a", 0), operators=("c",))[1] == []


def test_feedback_is_forgotten_when_everybody_is_dismissed(connect):
    """Those who come next may be of another pool."""
    board = connect().board
    board.post(("b", 7), SketchReport(7, np.ones((2, 3)), np.ones((2, 3))))
    board.post(("b", 0), SyncReply(0, round_number=1, difference=0.5), [("a", 0)])
    after, _ = heard(board, ("a", 0))
    board.dismiss([("b", 7)])
    assert len(heard(board, ("a", 0))[1]) == 2
    board.dismiss()
    assert heard(board, ("a", 0))[1] == []
    reply = SyncReply(0, round_number=2, difference=0.25)
    board.post(("b", 0), reply, [("a", 0)])
    assert heard(board, ("a", 0), after)[1] == [("b", reply)]


def test_feedback_for_all_reaches_all_and_kinds_do_not_replace_each_other(connect):
    board = connect().board
    loads = ReplicaLoads((1.0, 2.0), (0.1, 0.2), (0.5, 0.5), arriving=9.0, period=1.0)
    board.post(("b", 0), SyncReply(0, round_number=1, difference=0.5), [("a", 0)])
    board.post(("b", 0), loads)
    after, news = heard(board, ("a", 0))
    assert news == [("b", loads), ("b", SyncReply(0, round_number=1, difference=0.5))]
    assert heard(board, ("a", 7))[1] == [("b", loads)]
    newer = ReplicaLoads((3.0, 4.0), (0.1, 0.2), (0.5, 0.5), arriving=9.0, period=1.0)
    board.post(("b", 0), newer)
    assert heard(board, ("a", 0), after)[1] == [("b", newer)]


def test_arrays_in_feedback_arrive_as_they_were(connect):
    report = SketchReport(3, np.arange(6.0).reshape(2, 3), np.ones((2, 3)) / 3)
    connect().board.post(("b", 3), report)
    _, [(operator, found)] = connect().board.feedback(("a", 0), ["b"], 0)
    assert (operator, found.replica) == ("b", 3)
    assert np.array_equal(found.frequency, report.frequency)
    assert np.array_equal(found.time, report.time)


# Wake-ups.

SHORT, LONG, GENEROUS = 0.15, 20.0, 10.0


def woken_by(end, act):
    """Sleep until somebody else does something; whether there was news."""
    end.lanes.wait(0.0)
    started = time.monotonic()
    end.lanes.wait(SHORT)
    assert time.monotonic() - started >= SHORT * 0.99, "nobody has done anything yet"
    timer = threading.Timer(0.05, act)
    timer.start()
    started = time.monotonic()
    news = end.lanes.wait(LONG)
    assert time.monotonic() - started < GENEROUS, "it was not woken"
    timer.join()
    return news


@pytest.mark.parametrize(
    "wake",
    [
        "events",
        "parcel",
        "plan",
        "dismissal",
        "release",
        "retry",
        "reassignment",
        "vacating",
        "deaths",
    ],
)
def test_who_waits_is_woken_and_told_whether_there_is_news(member, connect, put, wake):
    end, other, former = member("b", 0, {0}), connect(), member("b", 1, {1})
    letter = DeadLetter("b", 1, "ValueError", to_bytes(pa.table({"n": [0]})), lane=0)
    assert former.lanes.commit([], [], Counts(), [letter])
    generation = other.board.new_generation([("b", 0), ("b", 2)])
    other.board.take_role(generation, 0)
    other.board.start(generation)
    members = other.board.members()
    acts = {
        "events": lambda: put(parcel([1])),
        "parcel": lambda: put(for_lanes([1, 2], [1, 0])),
        "plan": lambda: other.board.publish(LanePlan({"b": (0,)}, {"b": (0, 0, 0, 0)})),
        "dismissal": other.board.dismiss,
        "release": lambda: former.lanes.hold(frozenset()),
        "retry": lambda: other.dead_letters.retry(list(other.dead_letters.read())),
        "reassignment": lambda: other.board.reassign(("b", 0), ("b", 2)),
        "vacating": lambda: other.board.vacate([("b", 0)]),
        "deaths": lambda: other.board.report_deaths({("b", 1): members["b", 1].process}),
    }
    news = {"plan", "dismissal", "release", "reassignment", "vacating", "deaths"}
    assert woken_by(end, acts[wake]) == (wake in news)


def test_who_waits_for_the_shared_lane_is_woken(shared, member, put):
    end = member("b", 0)
    assert woken_by(end, lambda: put(parcel([1], SHARED_LANE))) is False


@pytest.mark.parametrize("lane", [0, SHARED_LANE])
def test_nobody_sleeps_while_the_last_take_has_left_something(backend, member, put, lane):
    if lane == SHARED_LANE:
        backend.prepare(PIPELINE, SHARED)
    put(*[parcel(range(10), lane)] * 2)
    end = member("b", 0, () if lane == SHARED_LANE else {0})
    end.lanes.wait(0.0)
    for left in (True, False):
        taken = end.lanes.take(10, shared=lane == SHARED_LANE)
        assert end.lanes.commit(taken, [], Counts())
        started = time.monotonic()
        assert not end.lanes.wait(LONG if left else SHORT)
        slept = time.monotonic() - started
        assert slept < GENEROUS if left else slept >= SHORT * 0.99


def test_nobody_sleeps_on_a_lane_that_it_has_just_got(member, put):
    put(parcel([1], lane=1))
    end = member("b", 0, {0})
    assert end.lanes.take(100) == []
    end.lanes.hold(frozenset({0, 1}))
    started = time.monotonic()
    end.lanes.wait(LONG)
    assert time.monotonic() - started < GENEROUS


def test_feedback_wakes_nobody(member, connect):
    end, board = member("a"), connect().board
    end.lanes.wait(0.0)
    board.post(("b", 0), SyncReply(0, round_number=1, difference=0.5), [("a", 0)])
    started = time.monotonic()
    assert not end.lanes.wait(SHORT)
    assert time.monotonic() - started >= SHORT * 0.99


def test_what_is_swept_can_be_joined_again(backend, member, connect):
    member("b")
    backend.sweep()
    end = member("b")
    assert woken_by(end, lambda: connect().board.publish(LanePlan({"b": (0,)})))


# Dead letters.


@pytest.fixture
def set_aside(member):
    """A function that makes a dead letter of every number, from the lane of that number."""

    def commit(*lanes, operator="b"):
        end = member(operator, 9)
        for lane in lanes:
            data = to_bytes(pa.table({"n": [lane]}))
            letter = DeadLetter(operator, 1, f"ValueError: {lane}", data, lane)
            assert end.lanes.commit([], [], Counts(dropped=1), [letter])

    return commit


def test_dead_letters_are_kept_newest_first(set_aside, connect):
    set_aside(0, 1)
    set_aside(2, operator="c")
    newest, second, first = connect().dead_letters.read()
    assert (newest.operator, second.operator, first.operator) == ("c", "b", "b")
    assert (first.events, first.error, first.lane) == (1, "ValueError: 0", 0)
    assert first.data == to_bytes(pa.table({"n": [0]}))
    assert time.time() - 60 < first.time <= second.time <= newest.time <= time.time()
    assert [each.number for each in connect().dead_letters.read("b")] == [
        second.number, first.number,
    ]  # fmt: skip


def test_errors_are_counted_once_for_whoever_asks_again_and_again(set_aside, connect):
    letters = connect().dead_letters
    assert letters.errors(0) == (0, {})
    set_aside(0, 0, 1)
    set_aside(0, operator="c")
    after, errors = letters.errors(0)
    assert errors == {
        ("b", "ValueError: 0"): 2, ("b", "ValueError: 1"): 1, ("c", "ValueError: 0"): 1,
    }  # fmt: skip
    assert letters.errors(after) == (after, {})
    set_aside(1)
    assert letters.errors(after)[1] == {("b", "ValueError: 1"): 1}


def test_dead_letters_go_to_the_ends_of_their_lanes(set_aside, put, member, connect):
    set_aside(0, 1)
    put(parcel([7]))
    letters = connect().dead_letters
    newest, oldest = kept = list(letters.read())
    assert letters.retry([oldest]) == 1
    assert [each.number for each in letters.read()] == [newest.number]
    before = time.time()
    assert letters.retry(kept) == 1, "one has been put back already"
    taken = member("b", 0, {0, 1}).lanes.take(100)
    assert numbers(taken) == [7, 0, 1]
    assert born(taken)[2] == pytest.approx(before, abs=60)
    assert list(letters.read()) == []


def test_a_dead_letter_of_a_lane_that_is_gone_goes_to_one_that_is_there(
    backend, set_aside, member, connect
):
    set_aside(3, SHARED_LANE)
    backend.prepare(PIPELINE, {"b": OperatorLanes(2)})
    letters = connect().dead_letters
    assert letters.retry(list(letters.read())) == 2
    assert sorted(finish(member("b", 0, {0, 1}))) == [SHARED_LANE, 3]
    set_aside(1)
    backend.prepare(PIPELINE, {"b": OperatorLanes(2, shared=True)})
    assert letters.retry(list(letters.read())) == 1
    assert finish(member("b", 0), shared=True) == [1]


def test_a_dead_letter_with_a_key_goes_to_the_lane_of_its_key(backend, set_aside, member, connect):
    backend.prepare(PIPELINE, {"b": OperatorLanes(3, key="n")})
    set_aside(*range(20))
    letters = connect().dead_letters
    assert letters.retry(list(letters.read())) == 20
    for lane in range(3):
        mine = [n for n in range(20) if lanes_of_keys([n], 3)[0] == lane]
        assert sorted(finish(member("b", lane, {lane}))) == mine


# Clearing.


def test_what_waits_can_be_dropped_and_is_counted(backend, put, member):
    put(parcel(range(10)), for_lanes(range(4), [0, 1, 1, 2]), parcel([1], operator="c"))
    end = member("b", 0, {0, 1})
    under_way = end.lanes.take(100)
    assert backend.clear("b") == 14
    refused(end, under_way)
    totals = end.ledger.totals()
    assert (totals.waiting("b"), totals.waiting("c")) == (0, 1)
    dropped = sum(of.dropped for (name, _), of in totals.counts.items() if name == "b")
    assert dropped == 14
    assert backend.clear("b") == 0
    assert backend.clear("nobody") == 0


def test_what_was_processed_of_a_batch_is_not_dropped_with_its_rest(backend, put, member):
    put(parcel(range(90)), parcel([90]))
    end = member("b", 0, {0})
    part = end.lanes.take(30)
    done = len(numbers(part))
    assert end.lanes.commit(part, [], Counts(processed=done))
    assert backend.clear("b") == 91 - done
    totals = end.ledger.totals()
    assert (totals.waiting("b"), totals.counts["b", 0].processed) == (0, done)
    assert totals.counts["b", 0].dropped == 91 - done


def test_who_had_the_lanes_goes_on_after_they_were_cleared(backend, put, member):
    end = member("b", 0, {0, 1})
    backend.clear("b")
    put(parcel([1]))
    # It may have to learn first that it must take hold of them anew.
    taken = end.lanes.take(100)
    done = numbers(taken) if taken and end.lanes.commit(taken, [], Counts()) else []
    assert end.lanes.hold(frozenset({0, 1})) == {0, 1}, "without force: they are its own"
    assert done + finish(end) == [1]
    assert lengths(end) == {}


def test_the_shared_lane_can_be_cleared_while_somebody_works_on_it(shared, put, member):
    put(parcel(range(10), SHARED_LANE))
    end = member("b", 0)
    under_way = end.lanes.take(100, shared=True)
    assert shared.clear("b") == 10
    refused(end, under_way)
    put(parcel([1], SHARED_LANE))
    assert finish(end, shared=True) == [1]


# Another layout.


def by_lane(connect, operator="b"):
    """What waits, by lane; everything is taken out."""
    found = {}
    end = connect()
    end.lanes.join((operator, 0), 100)
    for lane in sorted(end.lanes.lengths(operator)):
        if lane >= 0:
            end.lanes.hold(frozenset({lane}), by_force=frozenset({lane}))
        if seen := finish(end, shared=lane == SHARED_LANE):
            found[lane] = seen
    return found


def test_the_same_layout_leaves_everything_alone(backend, put, member, connect):
    put(parcel(range(4), lane=3))
    end = member("b", 0, {3})
    taken = end.lanes.take(100)
    backend.prepare(PIPELINE, LANES)
    assert end.lanes.commit(taken, [], Counts())


def test_without_a_key_lanes_that_are_gone_are_folded_into_those_that_stay(backend, put, connect):
    put(*[parcel([lane, lane + 10], lane) for lane in range(4)])
    put(for_lanes([20, 21, 22], [1, 3, 2]))
    backend.prepare(PIPELINE, {"b": OperatorLanes(2)})
    assert by_lane(connect) == {0: [0, 10, 2, 12, 22], 1: [1, 11, 3, 13, 20, 21]}


def test_more_lanes_take_what_waits_along(backend, put, member, connect):
    put(parcel(range(6), lane=1), for_lanes(range(6, 10), [1, 2, 1, 2]))
    end = member("b", 0, {1, 2})
    done = end.lanes.take(3)
    assert end.lanes.commit(done, [], Counts())
    under_way = end.lanes.take(3)
    backend.prepare(PIPELINE, {"b": OperatorLanes(8)})
    assert not end.lanes.commit(under_way, [], Counts())
    waiting = by_lane(connect)
    assert sorted(n for of in waiting.values() for n in of) == list(range(3, 10))
    assert waiting[1] == [3, 4, 5, 6, 8]


def test_with_a_key_every_event_goes_to_the_lane_of_its_key(backend, put, connect):
    backend.prepare(PIPELINE, {"b": OperatorLanes(4, key="word")})
    words = [f"word {n % 7}" for n in range(40)]
    for some in (slice(0, 20), slice(20, 40)):
        table = pa.table({"n": range(40)[some], "word": words[some]})
        births = Births.evenly(20, 1.0)
        lane_of = lanes_of_keys(words[some], 4)
        put(Parcel.for_lanes("b", lane_of, births, to_bytes(table)))
    backend.prepare(PIPELINE, {"b": OperatorLanes(6, key="word")})
    waiting = by_lane(connect)
    assert sorted(n for of in waiting.values() for n in of) == list(range(40))
    for lane, of in waiting.items():
        assert set(lanes_of_keys([words[n] for n in of], 6).tolist()) == {lane}
    for word in range(7):
        in_order = [n for of in waiting.values() for n in of if n % 7 == word]
        assert in_order == list(range(word, 40, 7))


def test_births_move_along(backend, put, member):
    put(for_lanes(range(10, 20), [0, 1] * 5))
    backend.prepare(PIPELINE, {"b": OperatorLanes(3, key="n")})
    end = member("b", 0, {0, 1, 2})
    taken = end.lanes.take(100)
    assert sorted(born(taken)) == [float(n) for n in range(10, 20)]
    assert born(taken) == [float(n) for n in numbers(taken)]


def test_lanes_become_the_shared_lane_and_lanes_again(backend, put, connect, member):
    put(parcel([0, 1], lane=2), parcel([2], lane=0))
    backend.prepare(PIPELINE, SHARED)
    left = member("b", 5)
    assert len(left.lanes.take(1, shared=True)) == 1, "nobody works when lanes are laid out"
    assert lengths(left) == {SHARED_LANE: 3}
    backend.prepare(PIPELINE, LANES)
    waiting = by_lane(connect)
    assert sorted(n for of in waiting.values() for n in of) == [0, 1, 2]
    assert SHARED_LANE not in waiting


def begin(put, member, *parcels, most=100):
    """Let somebody begin with these, and die; the units."""
    put(*parcels)
    end = member("b", 0, range(4))
    begun = end.lanes.take(most, named=True)
    member("b", 0)  # In its place: that it died is noted.
    return [each.unit._replace(first=0) for each in begun]


def positions(taken):
    """By unit and position: the event, as an idempotency key names it."""
    return {
        (each.unit.name, (each.unit.at or 0) + place): event
        for each in taken
        for place, event in enumerate(numbers([each]))
    }


@pytest.mark.parametrize("lanes", [OperatorLanes(2), OperatorLanes(8), SHARED["b"]])
def test_units_that_were_begun_keep_their_names_when_lanes_change(backend, put, member, lanes):
    first, second = begin(put, member, parcel(range(3), 1), parcel(range(3, 6), 3))
    put(parcel([6], 1))
    backend.prepare(PIPELINE, {"b": lanes})
    end = member("b", 0, () if lanes.shared else range(lanes.lanes), generation=2)
    taken = end.lanes.take(100, shared=lanes.shared, named=True)
    by_name = {each.unit.name: each for each in taken}
    for unit, events in ((first, [0, 1, 2]), (second, [3, 4, 5])):
        again = by_name.pop(unit.name)
        assert numbers([again]) == events
        assert again.unit._replace(first=0) == unit._replace(attempt=2)
        assert again.deaths == 1, "which moves along"
    (rest,) = by_name.values()
    assert (numbers([rest]), rest.unit.attempt, rest.deaths) == ([6], 1, 0)
    assert end.lanes.commit(taken, [], Counts())
    assert not any(lengths(end).values())


@pytest.mark.parametrize("lanes", [OperatorLanes(2), SHARED["b"]])
def test_what_was_not_begun_of_a_batch_is_no_part_of_the_unit(backend, put, member, lanes):
    put(parcel(range(30), 1))
    end = member("b", 0, range(4))
    assert end.lanes.commit(end.lanes.take(10, named=True), [], Counts())
    (unit,) = (each.unit for each in end.lanes.take(10, named=True))
    backend.prepare(PIPELINE, {"b": lanes})
    seen = {}
    again = member("b", 0, () if lanes.shared else range(2), generation=2)
    while taken := again.lanes.take(10, shared=lanes.shared, named=True):
        seen |= {each.unit.name: numbers([each]) for each in taken}
        assert again.lanes.commit(taken, [], Counts())
    assert seen[unit.name] == list(range(10, 20))
    assert sorted(n for events in seen.values() for n in events) == list(range(10, 30))


def test_a_unit_that_a_key_sends_to_several_lanes_keeps_its_name_and_its_positions(
    backend, put, member
):
    units = begin(put, member, parcel(range(20), 1), parcel(range(20, 40), 2))
    put(parcel(range(40, 50), 1))
    known = {
        (unit.name, place): 20 * number + place
        for number, unit in enumerate(units)
        for place in range(20)
    }
    for generation, lanes in ((2, 3), (3, 7), (4, 2)):
        backend.prepare(PIPELINE, {"b": OperatorLanes(lanes, key="n")})
        end = member("b", 0, range(lanes), generation=generation)
        taken = end.lanes.take(100, named=True)
        assert sorted(numbers(taken)) == list(range(50))
        assert known.items() <= positions(taken).items()
        known = positions(taken)  # From the second time on, those that nobody had begun, too.
        for each in taken:
            assert len(set(lanes_of_keys(numbers([each]), lanes).tolist())) == 1
            if each.unit.name in {unit.name for unit in units}:
                assert (each.unit.attempt, each.unit.at is None) == (generation, False)
    assert end.lanes.commit(taken, [], Counts())
    assert not any(lengths(end).values())


def test_a_unit_that_stays_together_under_a_key_stays_whole(backend, put, member):
    (unit,) = begin(put, member, parcel([5, 5, 5], 1))
    backend.prepare(PIPELINE, {"b": OperatorLanes(3, key="n")})
    (taken,) = member("b", 0, range(3), generation=2).lanes.take(100, named=True)
    assert taken.unit._replace(first=0) == unit._replace(attempt=2)


def test_whether_units_wait_that_somebody_has_begun_is_known(backend, put, member):
    put(parcel(range(3), 1), parcel(range(30), 2))
    end = member("b", 0, {1, 2})
    assert not end.lanes.begun("b")
    assert not end.lanes.begun("nobody")
    taken = end.lanes.take(10, named=True)
    assert end.lanes.begun("b")
    assert end.lanes.commit(taken, [], Counts())
    assert not end.lanes.begun("b")
    while taken := end.lanes.take(10, named=True):
        backend.prepare(PIPELINE, LANES)
        assert end.lanes.begun("b")
        assert end.lanes.commit(taken, [], Counts())
    assert not end.lanes.begun("b")


# Several processes, where there are any.


@pytest.fixture
def folder(tmp_path):
    """The folder of a backend that processes share."""
    BACKENDS["sqlite"](tmp_path).prepare(PIPELINE, SHARED)
    yield tmp_path
    BACKENDS["sqlite"](tmp_path).sweep()


def _work(folder, replica):
    with BACKENDS["sqlite"](folder).connect() as end:
        end.lanes.join(("b", replica), 1)
        while taken := end.lanes.take(5, shared=True):
            events = sum(each.events for each in taken)
            result = parcel(numbers(taken), replica, "c")
            assert end.lanes.commit(taken, [result], Counts(events))


def test_processes_that_work_side_by_side_lose_nothing_and_do_nothing_twice(folder):
    backend = BACKENDS["sqlite"](folder)
    with backend.connect() as end:
        end.lanes.join(("a", 0), 1)
        parcels = [parcel([n], SHARED_LANE) for n in range(300)]
        end.lanes.commit([], parcels, Counts())
        spawn = multiprocessing.get_context("spawn")
        workers = [spawn.Process(target=_work, args=(folder, number)) for number in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert sum(of.processed for of in end.ledger.totals().counts.values()) == 300
    seen = []
    with backend.connect() as end:
        end.lanes.join(("c", 0), 1)
        end.lanes.hold(frozenset(range(4)))
        seen = finish(end)
    assert sorted(seen) == list(range(300))


OWNS = """
import sys, time
from pathlib import Path
from elastream.engines.spark.backends.sqlite import SqliteBackend
with SqliteBackend(Path(sys.argv[1])).own():
    print("mine", flush=True)
    time.sleep(600)
"""


def test_a_driver_that_was_killed_owns_nothing_any_more(folder):
    backend = BACKENDS["sqlite"](folder)
    command = [sys.executable, "-c", OWNS, str(backend.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as driver:
        assert driver.stdout.readline() == b"mine\n"
        second = backend.own()
        with pytest.raises(InvalidInputError, match=rf"in use by process {driver.pid} on .* since"):
            second.__enter__()
        os.kill(driver.pid, signal.SIGKILL)
    eventually(lambda: driver.poll() is not None)
    with backend.own():
        pass


# Chains.


def test_what_chained_operators_did_is_counted_for_their_replicas_of_the_same_number(member):
    end = member("b", 2)
    inner = Counts(processed=3, emitted=2, busy=0.5, sent={"d": 2})
    for _ in range(2):
        assert end.lanes.commit([], [], Counts(processed=4, emitted=3, chained={"c": inner}))
    counts = end.ledger.totals().counts
    assert (counts["b", 2].processed, counts["b", 2].emitted) == (8, 6)
    assert (counts["c", 2].processed, counts["c", 2].busy) == (6, 1.0)
    assert counts["c", 2].sent == {"d": 4}
    assert not counts["b", 2].chained


def test_what_enters_a_chain_in_its_middle_counts_besides_what_comes_through_it(member):
    """Where dead letters are let in, a second connection counts for the operator inside."""
    first, inside = member("b", 2), member("c", 2)
    one, many = Counts(sent={"d": 1}, lost={"d": 1}), Counts(sent={"d": 10})
    for _ in range(3):
        assert first.lanes.commit([], [], Counts(chained={"c": many}))
        assert inside.lanes.commit([], [], one)
        counts = inside.ledger.totals().counts["c", 2]
    assert (counts.sent, counts.lost) == ({"d": 33}, {"d": 3})


def test_the_times_of_units_add_up(member):
    end = member("b", 2)
    for _ in range(2):
        assert end.lanes.commit([], [], Counts(processed=4, units=1, squares=0.25))
    counts = end.ledger.totals().counts["b", 2]
    assert (counts.units, counts.squares) == (2, 0.5)


def test_the_layout_and_its_chains_are_kept(backend):
    assert backend.layout() == LANES
    chained = {"b": OperatorLanes(4), "c": OperatorLanes(1, chained_to="b")}
    backend.prepare(PIPELINE, chained)
    assert backend.layout() == chained
    backend.prepare(PIPELINE, LANES)
    assert backend.layout() == LANES
