"""Generations on a clock of the test's own: when the next one starts, and when none does."""

import itertools
import logging

import pyarrow as pa
import pytest

from elastream.core.health import RestartPolicy, Restarts, State
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.engines.spark.driver import generations as module
from elastream.engines.spark.driver.generations import Generations
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.deployment import Deployment
from elastream.errors import BackendUnavailableError, EngineError
from support.memory_backend import MemoryBackend
from support.waiting import eventually

SECONDS = 100.0
POLICY = RestartPolicy(most=3, within=600.0, first_pause=1.0, longest_pause=3.0)


class Query:
    """A query of Spark, as far as generations look at it."""

    def __init__(self):
        self.active, self.error, self.stopped, self.answers = True, None, False, True
        self.recentProgress = ()

    @property
    def isActive(self):  # noqa: N802 - as Spark calls it
        if not self.answers:
            raise ConnectionRefusedError("the JVM is gone")
        return self.active

    def exception(self):
        if not self.answers:
            raise ConnectionRefusedError("the JVM is gone")
        return self.error

    def stop(self):
        if not self.answers:
            raise ConnectionRefusedError("the JVM is gone")
        self.active, self.stopped = False, True

    def die(self, error):
        self.active, self.error = False, error


class Session:
    """Starts queries whose workers are ready at once and join when they may, unless told not to.

    As many of them as there are slots.
    """

    def __init__(self, board, slots=100):
        self.queries, self.workers, self.slots = [], [], slots
        self.ready, self.gone = True, False
        self._board = board

    def __getattr__(self, name):
        return self if name in ("readStream", "writeStream") else lambda *_: self

    def option(self, name, value):
        if name == "workers":
            self.workers.append(int(value))
        return self

    def start(self):
        if self.gone:
            raise ConnectionRefusedError("the JVM is gone")
        query = Query()
        self.queries.append(query)
        number = len(self.queries)
        for worker in range(min(self.workers[-1], self.slots)) if self.ready else ():
            self._board.report_ready(number, self._board.take_role(number, worker))
        return query


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Generations, whose thread does not run, and the session that they are in."""
    monkeypatch.setattr(module, "READY_SECONDS", 0.05)
    return world_of(tmp_path)


def world_of(tmp_path, slots=100, **settings):
    """With one replica, unless another pool is given; the session has so many slots."""
    fitted = settings.pop("fitted", False)
    pipeline = Pipeline("test")
    operator = {"pool": 1} | settings
    pipeline.add(lambda table: table, after=pipeline.source("in"), name="work", **operator)
    backend = MemoryBackend(str(tmp_path))
    deployment = Deployment(pipeline.topology(), {}, Options(), backend, frozenset())
    backend.prepare("test", deployment.layout)
    board = backend.connect().board
    session = Session(board, slots)
    made = Generations(
        session, deployment, board, SECONDS, lambda: session.slots, tmp_path, fitted=fitted
    )
    made._restarts = Restarts(POLICY)
    board.start(1)
    made._ends = SECONDS
    return made, session


def work_for_the_first(folder, numbers):
    """Put these into a lane, and have the only replica of the first generation hold it."""
    table = pa.table({"n": numbers})
    parcel = Parcel("work", 0, len(numbers), Births.evenly(len(numbers), 0.0), to_bytes(table))
    worker = MemoryBackend(str(folder)).connect()
    worker.lanes.join(("work", 0), 1)
    assert worker.lanes.commit([], [parcel], Counts())
    worker.lanes.hold(frozenset({0}))
    return worker


def noted_deaths(folder):
    end = MemoryBackend(str(folder)).connect()
    end.lanes.join(("work", 0), 100)
    end.lanes.hold(frozenset({0}), by_force=frozenset({0}))
    (taken,) = end.lanes.take(100)
    return taken.deaths


def test_the_query_before_is_stopped_also_if_it_cannot_be_seen_who_took_over(world, monkeypatch):
    generations, session = world

    def unavailable():
        raise BackendUnavailableError("no answer")

    monkeypatch.setattr(generations._board, "members", unavailable)
    generations.look(100.1)
    assert [query.stopped for query in session.queries] == [True, False]
    generations.look(150.0)
    assert len(session.queries) == 2


def test_a_generation_that_works_is_left_alone_until_its_time_is_over(world):
    generations, session = world
    for now in (0.0, 50.0, 99.9):
        generations.look(now)
    assert len(session.queries) == 1
    generations.look(100.1)
    assert [query.stopped for query in session.queries] == [True, False]
    assert generations.health().state is State.RUNNING
    generations.look(199.0)
    assert len(session.queries) == 2
    generations.look(210.0)
    assert len(session.queries) == 3


def test_when_another_driver_has_taken_over_its_members_are_left_alone(world, tmp_path):
    generations, session = world
    theirs = MemoryBackend(str(tmp_path)).connect()
    theirs.lanes.join(("work", 0), 7)
    generations._ownership.lost = "another driver has taken over"
    generations.look(100.1)
    assert len(session.queries) == 1
    health = generations.health()
    assert (health.state, health.why) == (State.FAILED, "another driver has taken over")
    generations.close()
    assert session.queries[0].stopped
    assert theirs.lanes.joined()


def test_one_that_cannot_start_leaves_the_old_one_at_work_and_is_tried_again_later(world, caplog):
    generations, session = world
    session.ready = False
    generations.look(101.0)
    first, failed = session.queries
    assert (first.isActive, failed.stopped) == (True, True)
    health = generations.health()
    assert health.state is State.DEGRADED
    assert "2 workers were not ready" in health.why
    assert "restart 1 of 3" in health.why
    generations.look(101.5)
    assert len(session.queries) == 2, "not before the pause is over"
    session.ready = True
    generations.look(103.0)
    assert (first.stopped, len(session.queries)) == (True, 3)
    assert generations.health().state is State.RUNNING
    assert [r for r in caplog.records if r.levelno == logging.ERROR]


def test_a_set_up_that_failed_once_does_not_keep_the_next_generation_from_starting(world):
    generations, session = world
    board, session.ready = generations._board, False
    offered = session.start

    def fails():
        query = offered()
        board.report_failure(len(session.queries), ("work", 0), "no database today")
        return query

    session.start = fails
    generations.look(101.0)
    assert "a replica of 'work' cannot start: no database today" in generations.health().why
    assert board.failures() == {}, "the old one works"
    session.ready, session.start = True, offered
    generations.look(103.0)
    assert [query.stopped for query in session.queries] == [True, True, False]
    assert generations.health().state is State.RUNNING


def test_what_spark_noted_of_generations_that_are_over_is_removed(world, tmp_path):
    generations, session = world

    def notes():
        return sorted(int(path.name) for path in (tmp_path / "checkpoints").iterdir())

    for number in range(1, 9):
        (tmp_path / "checkpoints" / str(number)).mkdir(parents=True)
    generations.look(101.0)
    assert notes() == list(range(2, 9))
    session.ready = False
    generations.look(250.0)
    assert notes() == [2, *range(4, 9)], "that of one which could not start is gone, too"


def test_pauses_grow_and_the_old_generation_never_stops(world):
    generations, session = world
    session.ready = False
    tries, now = [], 101.0
    while len(tries) < 5:
        before = len(session.queries)
        generations.look(now)
        if len(session.queries) > before:
            tries.append(now)
        now += 0.1
    gaps = [round(later - earlier, 1) for earlier, later in itertools.pairwise(tries)]
    assert gaps == sorted(gaps)
    assert gaps[0] >= 1.0
    assert 3.0 <= gaps[-1] <= 3.5
    assert session.queries[0].isActive
    assert generations.health().state is State.DEGRADED, "somebody works: it has not failed"


def test_a_query_that_dies_is_replaced_after_a_pause_and_the_cause_is_told(world):
    generations, session = world
    session.queries[0].die("Job aborted\n=== Streaming Query ===\nIdentifier: x")
    generations.look(5.0)
    assert len(session.queries) == 1
    health = generations.health()
    assert (health.state, health.why) == (
        State.DEGRADED,
        "the workers' query ended: Job aborted; restart 1 of 3",
    )
    generations.look(6.1)
    assert len(session.queries) == 2
    assert generations.health().state is State.RUNNING


@pytest.mark.parametrize("slots", [100, 3], ids=["for two", "for one"])
@pytest.mark.parametrize("then", ["is replaced", "is closed"])
def test_when_a_query_dies_that_is_noted_on_what_its_workers_may_have_worked_on(
    hasty, tmp_path, slots, then
):
    generations, session = world_of(tmp_path, slots)
    worker = work_for_the_first(tmp_path, [1, 2])
    session.queries[0].die("out of memory")
    if then == "is replaced":
        for now in (1.0, 3.0):
            generations.look(now)
    else:
        generations.close()
    assert not worker.lanes.joined()
    assert noted_deaths(tmp_path) == 1


@pytest.mark.parametrize("slots", [100, 3], ids=["for two", "for one"])
def test_when_a_generation_ends_in_time_nobody_has_died(hasty, tmp_path, slots):
    generations, _ = world_of(tmp_path, slots)
    work_for_the_first(tmp_path, [1, 2])
    generations.look(101.0)
    generations.close()
    assert noted_deaths(tmp_path) == 0


def test_one_that_dies_again_and_again_has_failed_with_the_cause(world):
    generations, session = world
    now = 1.0
    for _ in range(10):
        if session.queries[-1].isActive:
            session.queries[-1].die("out of memory")
        for _ in range(5):
            generations.look(now)
            now += 1.0
    assert len(session.queries) == 1 + POLICY.most, "restarts are limited"
    health = generations.health()
    assert health.state is State.FAILED
    assert health.why == (
        "the workers' query ended: out of memory; it has failed 4 times within 600 s"
    )


def test_failures_of_long_ago_do_not_count(world):
    generations, session = world
    for death in range(8):
        now = 1000.0 * death
        generations._ends = now + SECONDS
        session.queries[-1].die("an accident")
        generations.look(now)
        generations.look(now + 5.0)
        assert session.queries[-1].isActive
    assert generations.health().state is State.RUNNING


def test_a_board_that_cannot_be_written_to_ends_nothing(world, monkeypatch):
    """As when the disk is full: everybody waits, nothing counts as a failure, and it goes on."""
    generations, session = world

    def full():
        raise BackendUnavailableError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(generations._board, "probe", full)
        for now in range(101, 200):
            generations.look(float(now))
        health = generations.health()
        assert health.state is State.WAITING
        assert "database or disk is full" in health.why
        assert session.queries[0].isActive
        assert len(session.queries) == 1
    generations.look(210.0)
    assert [query.stopped for query in session.queries] == [True, False]
    assert generations.health().state is State.RUNNING


def test_one_that_cannot_be_started_is_not_left_behind(world, monkeypatch):
    generations, session = world

    def full(_):
        raise BackendUnavailableError("database or disk is full")

    monkeypatch.setattr(generations._board, "start", full)
    monkeypatch.setattr(generations._board, "abandon", full)
    generations.look(101.0)
    assert [query.stopped for query in session.queries] == [False, True]
    assert generations.health().state is State.WAITING


def test_one_that_starts_after_many_failures_is_running(world):
    generations, session = world
    session.ready, now = False, 101.0
    while len(session.queries) < 3 + POLICY.most:
        generations.look(now)
        now += 1.0
    session.ready = True
    generations.look(now + POLICY.longest_pause)
    assert generations.health().state is State.RUNNING


def test_a_spark_that_does_not_answer_is_told_and_tried_again(world):
    generations, session = world
    session.queries[0].answers, session.gone = False, True
    now = 1.0
    generations.look(now)
    assert generations.health().state is State.DEGRADED
    assert "Spark does not answer: ConnectionRefusedError" in generations.health().why
    for _ in range(60):
        now += 1.0
        generations.look(now)
    health = generations.health()
    assert health.state is State.FAILED
    assert "the JVM is gone" in health.why


def test_a_spark_that_answers_again_is_well(world):
    generations, session = world
    session.queries[0].answers = False
    generations.look(1.0)
    assert generations.health().state is State.DEGRADED
    session.queries[0].answers = True
    generations.look(1.5)
    assert generations.health().state is State.RUNNING
    assert len(session.queries) == 1


def test_whatever_a_look_raises_the_next_one_follows(world, monkeypatch):
    generations, _ = world
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.001)
    looks = []

    def look(now):
        looks.append(now)
        raise ZeroDivisionError("no")

    monkeypatch.setattr(generations, "look", look)
    generations._thread.start()
    eventually(lambda: len(looks) > 2)
    assert "the workers cannot be looked after: no" in generations.health().why
    generations.close()


@pytest.fixture
def hasty(monkeypatch):
    """Nobody waits long for what does not happen."""
    monkeypatch.setattr(module, "READY_SECONDS", 0.05)
    monkeypatch.setattr(module, "STOP_SECONDS", 0.05)


def test_without_slots_for_two_a_generation_lasts_until_its_query_dies(hasty, tmp_path):
    generations, session = world_of(tmp_path, slots=3)
    for now in (50.0, 101.0, 1_000.0):
        generations.look(now)
    assert len(session.queries) == 1
    session.queries[0].die("no more")
    generations.look(1_001.0)
    generations.look(1_003.0)
    assert len(session.queries) == 2
    assert generations.health().state is State.RUNNING


def test_when_more_slots_come_generations_are_periodic_again(hasty, tmp_path):
    generations, session = world_of(tmp_path, slots=3)
    generations.look(101.0)
    session.slots = 4
    generations.look(102.0)
    assert [query.stopped for query in session.queries] == [True, False]


def test_with_fewer_slots_than_members_a_generation_begins_with_sources_and_minima(tmp_path):
    generations, session = world_of(tmp_path, slots=3, pool=4, minimum=2)
    generations.wait_until_ready(0.05)
    generations.close()
    assert session.workers == [5], "the others are there when slots are"


def test_it_does_not_begin_without_them(tmp_path):
    generations, _ = world_of(tmp_path, slots=2, pool=4, minimum=2)
    with pytest.raises(EngineError, match="1 of 3 workers have not started"):
        generations.wait_until_ready(0.05)


def test_with_enough_slots_it_begins_when_everybody_is_ready(tmp_path):
    generations, session = world_of(tmp_path, slots=5, pool=4, minimum=2)
    assert generations._running.required == set(generations._members)
    assert session.workers == [5]


def test_with_data_frames_workers_leave_their_slots_free(tmp_path):
    _, session = world_of(tmp_path, slots=4, pool=8, minimum=2, fitted=True)
    assert session.workers == [4]
    _, session = world_of(tmp_path / "fewer", slots=1, pool=8, minimum=2, fitted=True)
    assert session.workers == [3], "never fewer than it takes"


@pytest.mark.parametrize("slots", [3, 6])
def test_with_data_frames_another_number_of_slots_for_long_changes_the_workers(
    hasty, tmp_path, slots
):
    generations, session = world_of(tmp_path, slots=4, pool=8, fitted=True)
    session.slots = slots
    generations.look(10.0)
    session.slots = 4
    generations.look(39.0)
    session.slots = slots
    for now in (41.0, 70.0):
        generations.look(now)
    assert session.workers == [4], "it was only for a while"
    generations.look(72.0)
    assert session.workers == [4, slots]
    assert [query.stopped for query in session.queries] == [True, False]
    generations.look(110.0)
    assert len(session.queries) == 2
