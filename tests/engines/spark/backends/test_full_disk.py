"""A full disk: nothing is lost, and everything goes on when there is space again."""

import sqlite3
import threading
from contextlib import contextmanager

import pyarrow as pa
import pytest

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite import SqliteBackend, database
from elastream.engines.spark.backends.sqlite.database import writing
from elastream.engines.spark.births import Births
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker import member as member_module
from elastream.engines.spark.worker.deployment import Deployment
from elastream.errors import BackendUnavailableError
from support.small_disk import fill, small_disk
from support.waiting import eventually

LARGE = 1_000_000


@contextmanager
def full_disk(connection):
    """No page can be added to the file by this connection."""
    db = connection._db
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (before,) = db.execute("PRAGMA max_page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA max_page_count = {before}")


@pytest.fixture
def backend(tmp_path):
    made = SqliteBackend(tmp_path / "state")
    made.prepare("test", {"work": OperatorLanes(2), "end": OperatorLanes(2)})
    yield made
    made.sweep()


def large(operator="end"):
    table = pa.table({"text": ["x" * LARGE]})
    return Parcel(operator, 0, 1, Births.evenly(1, 1.0), to_bytes(table))


class Refusing:
    """A connection that others were always quicker than, as SQLite says it on a busy machine."""

    def execute(self, statement):
        error = sqlite3.OperationalError("locking protocol")
        error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
        raise error


def test_a_machine_that_is_too_busy_for_a_lock_is_waited_for():
    with pytest.raises(BackendUnavailableError, match="locking protocol"), writing(Refusing()):
        pass


@pytest.mark.parametrize(
    "ask",
    [
        lambda end: end.board.plan(),
        lambda end: end.board.feedback(("work", 0), ["end"], 0),
        lambda end: end.board.failures(),
        lambda end: end.board.members(),
        lambda end: end.lanes.joined(),
        lambda end: end.lanes.lengths("work"),
        lambda end: end.lanes.take(10),
        lambda end: end.lanes.take(10, shared=True),
        lambda end: end.ledger.totals(),
        lambda end: end.lanes.commit([], [], Counts()),
    ],
)
def test_who_reads_at_a_bad_moment_is_told_to_try_again(backend, monkeypatch, ask):
    """Every statement is interrupted, which stands for a disk that cannot be read."""
    monkeypatch.setattr(database, "_PASSING", {sqlite3.SQLITE_INTERRUPT})
    with backend.connect() as end:
        end.lanes.join(("work", 0), 1)
        end.lanes.hold(frozenset({0}))
        end._db.set_progress_handler(lambda: 1, 1)
        with pytest.raises(BackendUnavailableError, match="interrupted"):
            ask(end)
        end._db.set_progress_handler(None, 1)
        ask(end)


def test_a_mistake_in_a_statement_is_not_tried_again(backend):
    with backend.connect() as end, pytest.raises(sqlite3.OperationalError, match="no such table"):
        end._db.execute("SELECT * FROM nowhere")


def test_a_commit_that_finds_no_space_has_not_happened_and_can_be_tried_again(backend):
    with backend.connect() as end:
        end.lanes.join(("work", 0), 1)
        end.lanes.hold(frozenset({0}))
        end.lanes.commit([], [large("work")], Counts())
        taken = end.lanes.take(10)
        before = end.ledger.totals()
        with full_disk(end):
            for _ in range(2):
                with pytest.raises(BackendUnavailableError, match="full"):
                    end.lanes.commit(taken, [large(), large()], Counts(processed=1))
                assert end.ledger.totals() == before
        assert end.lanes.commit(taken, [large(), large()], Counts(processed=1))
        totals = end.ledger.totals()
        assert (totals.waiting("work"), totals.waiting("end")) == (0, 2)


def test_a_query_is_told_and_can_stage_again(backend):
    inbox = backend.inbox("in")
    try:
        with full_disk(inbox), pytest.raises(BackendUnavailableError, match="full"):
            inbox.stage("task", 1, b"x" * LARGE)
        inbox.stage("task", 1, b"x" * LARGE)
        assert inbox.admit(0, {"task": 1})
    finally:
        inbox.close()


def test_a_replica_waits_for_space_and_goes_on(backend, monkeypatch):
    monkeypatch.setattr(member_module, "UNAVAILABLE_SECONDS", 0.01)
    tries = []

    def inflate(table):
        tries.append(table.num_rows)
        return pa.table({"text": ["x" * LARGE] * table.num_rows})

    pipeline = Pipeline("test")
    pipeline.add(inflate, after=pipeline.source("in"), name="work", pool=1, lanes=2)
    pipeline.add(len, after="work", name="end", pool=1, lanes=2)
    deployment = Deployment(pipeline.topology(), {}, Options(), backend)
    with backend.connect() as driver, backend.connect() as own:
        generation = driver.board.new_generation([("work", 0)])
        driver.board.start(generation)
        driver.board.publish(LanePlan({"work": (0,), "end": (0,)}, {"work": (0, 0), "end": (0, 0)}))
        driver.lanes.join(("in", 0), generation)
        with full_disk(own):
            replica = deployment.member(("work", 0), own, generation)
            thread = threading.Thread(target=replica.run)
            thread.start()
            table = to_bytes(pa.table({"n": [1]}))
            driver.lanes.commit([], [Parcel("work", 0, 1, Births.evenly(1, 1.0), table)], Counts())
            eventually(lambda: tries)
            thread.join(timeout=0.2)
            assert thread.is_alive()
            assert driver.ledger.totals().waiting("work") == 1
        eventually(lambda: driver.ledger.totals().waiting("end") == 1)
        driver.board.dismiss()
        thread.join()
        assert driver.ledger.counts(("work", 0)).processed == 1


def probe_often(board):
    """Room that was there before is used up first."""
    for _ in range(10_000):
        board.probe()


def test_a_disk_that_is_really_full_is_told_and_waited_for(tmp_path):
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        backend = SqliteBackend(disk / "state")
        backend.prepare("test", {"end": OperatorLanes(2)})
        with backend.connect() as end:
            end.lanes.join(("work", 0), 1)
            end.board.probe()
            ballast = fill(disk)
            with pytest.raises(BackendUnavailableError, match="full"):
                end.lanes.commit([], [large()], Counts(emitted=1))
            with pytest.raises(BackendUnavailableError, match="full"):
                probe_often(end.board)
            ballast = fill(disk)
            with pytest.raises(BackendUnavailableError):
                end.board.publish(LanePlan({"end": (0,)}))
            assert end.ledger.totals().waiting("end") == 0
            ballast.unlink()
            end.board.probe()
            assert end.lanes.commit([], [large()], Counts(emitted=1))
            assert end.ledger.totals().waiting("end") == 1
        backend.sweep()


def test_a_log_that_fills_the_disk_makes_room_for_itself(tmp_path):
    """What waits for the next checkpoint may be all that there is on a small disk."""
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        backend = SqliteBackend(disk / "state")
        backend.prepare("test", {"end": OperatorLanes(2)})
        with backend.connect() as end:
            end.lanes.join(("work", 0), 1)
            with pytest.raises(BackendUnavailableError, match="full"):
                probe_often(end.board)
            for _ in range(1_000):
                end.board.probe()
        backend.sweep()
