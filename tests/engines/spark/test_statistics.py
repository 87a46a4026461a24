"""From what members have counted to what happened in an interval."""

import os
import socket
import threading
import time

import pytest

from elastream.core.chains import Chains
from elastream.core.health import State
from elastream.core.latency import LatencyHistogram
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.ledger import Counts, LaneState, Totals
from elastream.engines.spark.backends.members import Attendance, this_process
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.driver.condition import (
    SILENT_SECONDS,
    Condition,
    Heartbeats,
    absences,
    stalls,
    unread,
)
from elastream.engines.spark.driver.sampler import Sampler
from elastream.engines.spark.driver.statistics import interval_stats
from elastream.engines.spark.worker.member import BEAT_SECONDS
from elastream.engines.spark.worker.replica import IDLE_SECONDS
from elastream.errors import BackendUnavailableError
from support.waiting import eventually
from support.workers import Workers


def topology():
    pipeline = Pipeline("test")
    pipeline.add(len, after=pipeline.source("in"), name="work", pool=4)
    pipeline.add(len, after="work", name="store", pool=2)
    return pipeline.topology()


def attendance(process="1:a", heartbeat=0, busy_for=0.0):
    return Attendance(process, generation=1, heartbeat=heartbeat, busy_for=busy_for)


def condition(active=(), joined=(), silent=(), wanted=None, busy=None):
    plan = LanePlan({"work": tuple(active), "store": (0,)})
    members = {
        ("work", number): attendance(busy_for=(busy or {}).get(number, 0.0)) for number in joined
    } | {("store", 0): attendance()}
    counts = {"work": len(active) if wanted is None else wanted, "store": 1}
    return Condition(plan, counts, members, frozenset(("work", number) for number in silent))


def lanes(*owners, waiting=0):
    return {lane: LaneState(10, waiting, owner) for lane, owner in enumerate(owners)}


def stats(before=None, after=None, now=None, samples=None, duration=2.0):
    nothing = Totals({}, {})
    return interval_stats(
        Chains.planned(topology()), 3, duration, before or nothing, after or nothing,
        now or condition([0], [0]), samples or {"in": (1.0, 2.0)},
    )  # fmt: skip


# Who is active, draining, pending or dead, and where.


def test_active_replicas_share_the_cores_of_their_machine():
    members = {("work", 3): attendance("1:a:2:left"), ("store", 0): attendance("1:b")}
    members |= {("work", number): attendance(f"1:{number}:2:left") for number in range(3)}
    members |= {("store", 1): attendance("2:c:4:right")}
    plan = LanePlan({"work": (0, 2, 3), "store": (0, 1)})
    now = Condition(plan, {"work": 3, "store": 2}, members, frozenset())
    assert now.cores == {("work", 0): 0, ("work", 2): 1, ("work", 3): 0, ("store", 1): 2}
    found = stats(now=now).operators
    assert [replica.core for replica in found["work"].replicas.values()] == [0, 1, 0]
    assert [replica.core for replica in found["store"].replicas.values()] == [None, 2]


def test_a_process_says_where_it_runs():
    mine = attendance(this_process())
    assert (mine.pid, mine.machine) == (os.getpid(), (socket.gethostname(), os.cpu_count()))
    assert mine != attendance(this_process())


def test_active_is_who_is_planned_has_joined_and_is_heard_of():
    now = condition(active=[0, 1, 2], joined=[0, 2, 3], silent=[2], wanted=3)
    of = stats(now=now).operators["work"]
    assert (of.active, of.dead, of.pending) == (1, 1, 1)
    assert set(of.replicas) == {0}


def test_pending_is_who_is_wanted_and_not_there():
    assert stats(now=condition([0], [0], wanted=3)).operators["work"].pending == 2
    assert stats(now=condition([0, 1], [0, 1], wanted=1)).operators["work"].pending == 0


def test_draining_is_who_still_has_hold_of_lanes_that_are_others():
    after = Totals({}, {"work": lanes(0, 1, 1, None, 3)})
    of = stats(after=after, now=condition([0], [0, 1, 2, 3])).operators["work"]
    assert (of.active, of.draining, of.costing) == (1, 2, 3)


def test_who_takes_from_a_shared_queue_is_draining_while_it_is_busy():
    now = condition([0], [0, 1, 2, 3], silent=[3], busy={0: 2.0, 1: 3.0, 3: 4.0})
    of = stats(now=now).operators["work"]
    assert (of.active, of.draining, of.costing) == (1, 1, 2)


def test_stalled_is_who_has_been_busy_with_one_unit_for_long():
    now = condition([0, 1, 2, 3], [0, 1, 2, 3], silent=[3], busy={0: 9.0, 1: 34.0, 3: 50.0})
    found = stats(now=now)
    assert found.operators["work"].stalled == {1: 34.0}
    (health,) = stalls(found)
    assert str(health) == "degraded: replica work/1 has been busy with one unit for 34 s"


def test_an_operator_without_any_replica_is_waited_for_and_told():
    """As when all executors have died, and others are coming."""
    told = [str(health) for health in absences(stats(now=condition([0, 1], [])))]
    assert "waiting: no replica of 'work' is there: its workers wait for task slots" in told
    told = absences(stats(now=condition([0, 1], [0])))
    assert not [health for health in told if "'work'" in health.why]


def test_an_output_that_stays_full_is_waited_for_and_told():
    def output(waiting):
        return Totals({}, {output_of("work"): {0: LaneState(500, waiting, None)}})

    (health,) = unread(["work", "store"], 100, output(100), output(101))
    assert str(health) == (
        "waiting: the output of 'work' is full, with 101 events: "
        "is the query running that reads it?"
    )
    assert unread(["work"], 100, output(100), output(99)) == []
    assert unread(["work"], 100, output(99), output(100)) == []


def test_what_is_long_depends_on_what_units_usually_take():
    slow = Totals({("work", 0): Counts(processed=10, busy=20.0)}, {})
    now = condition([0, 1], [0, 1], busy={0: 39.0, 1: 41.0})
    assert stats(after=slow, now=now).operators["work"].stalled == {1: 41.0}
    pipeline = Pipeline("test")
    pipeline.add(len, after=pipeline.source("in"), name="work", pool=2, execution_time=1.0)
    pipeline.add(len, after="work", name="store", pool=2)
    first = interval_stats(
        Chains.planned(pipeline.topology()), 0, 1.0, Totals({}, {}), Totals({}, {}),
        condition([0, 1], [0, 1], busy={0: 19.0, 1: 21.0}), {},
    )  # fmt: skip
    assert first.operators["work"].stalled == {1: 21.0}


def test_a_silent_replica_that_nobody_planned_is_not_dead():
    assert stats(now=condition([0], [0, 1], silent=[1])).operators["work"].dead == 0


def test_nobody_who_is_well_is_silent_for_so_long():
    """An idle replica that has been woken just before its heartbeat was due sleeps once more."""
    assert BEAT_SECONDS + IDLE_SECONDS < SILENT_SECONDS


def test_members_that_fall_silent_are_noticed_and_those_that_beat_are_not():
    heartbeats = Heartbeats()
    well, ill = ("work", 0), ("work", 1)
    for second in range(int(SILENT_SECONDS) + 2):
        members = {well: attendance("1:a", second), ill: attendance("2:b")}
        silent = heartbeats.silent(members, float(second))
        assert silent == ({ill} if second > SILENT_SECONDS else frozenset())
    # Another process in its place is a new beginning.
    assert heartbeats.silent({ill: attendance("3:c")}, SILENT_SECONDS + 2) == frozenset()
    assert heartbeats.silent({}, 100.0) == frozenset()


# What was counted.


def test_an_interval_is_what_was_added_to_the_counts():
    latency = LatencyHistogram.of
    before = Totals(
        {
            ("in", 0): Counts(processed=100, emitted=90, sent={"work": 90}),
            ("work", 0): Counts(50, 50, 1, 1.0, 0.5, {"store": 50}, {}, latency([])),
            ("store", 0): Counts(40, 0, 0, 0.4, 0.1, latency=latency([0.1] * 40)),
        },
        {},
    )
    after = Totals(
        {
            ("in", 0): Counts(processed=160, emitted=130, sent={"work": 130}),
            ("work", 0): Counts(70, 75, 1, 1.5, 0.9, {"store": 75}, {"store": 2}, latency([])),
            ("work", 2): Counts(10, 10, 3, 0.2, 0.2, {"store": 10}, units=3, squares=0.1),
            ("store", 0): Counts(60, 0, 0, 0.6, 0.1, latency=latency([0.1] * 40 + [2.0] * 20)),
        },
        {
            "work": {0: LaneState(99, 7, 0), 1: LaneState(50, 5, 2), 2: LaneState(9, 4, None)},
            "store": {0: LaneState(60, 3, 0)},
        },
    )
    found = stats(before, after, condition([0, 1], [0, 1, 2]))
    source, work, store = found.sources["in"], *found.operators.values()
    assert (found.interval, found.duration) == (3, 2.0)
    assert (source.emitted, source.queued, source.samples) == (40, 30, (1.0, 2.0))
    assert (work.received, work.processed, work.emitted) == (40, 30, 35)
    assert (work.queued, work.dropped) == (16, 3)
    assert work.busy == pytest.approx(0.7)
    assert (work.units, work.squares) == (3, pytest.approx(0.1))
    assert (store.received, store.processed, store.dropped) == (35, 20, 2)
    assert found.edges == {("in", "work"): 40, ("work", "store"): 35}
    # Also one that was never at work, and one that no plan names but that was.
    assert {number: of.processed for number, of in work.replicas.items()} == {0: 20, 1: 0, 2: 10}
    assert {number: of.queued for number, of in work.replicas.items()} == {0: 7, 1: 0, 2: 5}
    assert work.replicas[0].cpu == pytest.approx(0.2)
    assert found.latency.count == 20
    assert found.latency.p50 == pytest.approx(2.0, rel=0.02)


def test_what_a_clearing_dropped_is_counted_for_its_operator():
    after = Totals({("work", 0): Counts(dropped=14)}, {})
    assert stats(after=after).operators["work"].dropped == 14


def test_nothing_at_the_end_means_no_latency():
    assert stats().latency is None


# Sampling.


@pytest.fixture
def workers():
    return Workers(topology())


def arrive(workers, events):
    with workers.backend.connect() as end:
        end.lanes.join(("in", 0), workers.generation)
        assert end.lanes.commit([], [], Counts(processed=events))


def test_a_sampler_counts_what_arrives_in_every_window(workers):
    windows = []
    sampler = Sampler(
        workers.backend.connect(), ("in",), 0.05, [lambda *window: windows.append(window)]
    )
    try:
        eventually(lambda: windows)
        arrive(workers, 30)
        seen = len(windows)
        eventually(lambda: len(windows) >= seen + 3)
    finally:
        sampler.close()
    taken, since = sampler.take()
    assert since >= 0
    assert len(taken["in"]) == len(windows)
    arrived = sum(
        sample * duration / 0.05 for (duration, _, samples) in windows for sample in samples["in"]
    )
    assert arrived == pytest.approx(30)
    taken, later = sampler.take()
    assert taken == {"in": ()}
    assert later >= since  # No window has closed in between.
    assert sampler.health().state is State.RUNNING


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (BackendUnavailableError("the disk is full"), State.WAITING),
        (ZeroDivisionError("no"), State.DEGRADED),
    ],
)
def test_a_window_that_fails_is_told_and_the_next_one_is_counted(workers, error, state):
    broken = threading.Event()
    broken.set()
    later = []

    def listener(*window):
        if broken.is_set():
            raise error
        later.append(window)

    sampler = Sampler(workers.backend.connect(), ("in",), 0.02, [listener])
    try:
        eventually(lambda: sampler.health().state is state)
        assert str(error) in sampler.health().why
        broken.clear()
        eventually(lambda: later)
        eventually(lambda: sampler.health().state is State.RUNNING)
    finally:
        sampler.close()


def test_a_first_look_that_fails_is_told_and_windows_follow(workers, monkeypatch):
    windows, connection = [], workers.backend.connect()
    with monkeypatch.context() as patched:

        def full():
            raise BackendUnavailableError("the disk is full")

        patched.setattr(connection.ledger, "totals", full)
        sampler = Sampler(connection, ("in",), 0.02, [lambda *window: windows.append(window)])
        eventually(lambda: sampler.health().state is State.WAITING)
    try:
        eventually(lambda: windows)
        eventually(lambda: sampler.health().state is State.RUNNING)
    finally:
        sampler.close()


def test_a_sampler_that_is_closed_ends_at_once(workers):
    sampler = Sampler(workers.backend.connect(), ("in",), 60.0)
    started = time.monotonic()
    sampler.close()
    assert time.monotonic() - started < 30
