"""Who may write next, and who moves what was written out of the log."""

import sqlite3
from contextlib import closing

import pytest

from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite import checkpointer, database
from elastream.engines.spark.backends.sqlite.checkpointer import Checkpointer
from elastream.engines.spark.backends.sqlite.database import FILE, TURN, Turn
from elastream.engines.spark.births import Births
from elastream.errors import InvalidInputError
from support.waiting import eventually


@pytest.fixture
def turns(backend):
    made = [Turn(backend.folder) for _ in range(2)]
    yield made
    for each in made:
        each.close()


def put(end, events=10, data=b""):
    parcel = Parcel("work", 0, events, Births.evenly(events, 1.0), data)
    return end.lanes.commit([], [parcel], Counts())


def log_size(backend):
    return (backend.folder / f"{FILE}-wal").stat().st_size


def naps(monkeypatch, meanwhile):
    """Let something happen instead of every nap; returns how long they would have been."""
    taken = []
    monkeypatch.setattr(
        database.time, "sleep", lambda seconds: (taken.append(seconds), meanwhile())
    )
    return taken


def test_whoever_comes_second_naps_until_the_first_has_written(turns, monkeypatch):
    first, second = turns
    first.wait()
    taken = naps(monkeypatch, first.end)
    second.wait()
    assert len(taken) == 1
    assert sum(taken) < 0.001
    first.wait()
    assert len(taken) > 2  # It is the second one's turn now, and it does not end it.


def test_a_turn_that_does_not_end_keeps_nobody_from_writing(end, turns, monkeypatch):
    turns[0].wait()
    taken = naps(monkeypatch, lambda: None)
    assert put(end)
    assert 0 < sum(taken) < 0.01


def test_a_commit_ends_its_turn_also_if_it_is_refused(backend, end, turns, monkeypatch):
    taken = naps(monkeypatch, lambda: None)
    put(end)
    events = end.lanes.take(10)
    with backend.connect() as other:
        other.lanes.join(("work", 1), 1)
        other.lanes.hold(frozenset({0}), by_force=frozenset({0}))
        assert not end.lanes.commit(events, [], Counts())
        assert put(other)
        turns[0].wait()
    assert not taken


def test_a_lock_that_cannot_be_had_is_refused_with_the_folder(backend):
    (backend.folder / TURN).unlink(missing_ok=True)
    (backend.folder / TURN).mkdir()
    with pytest.raises(InvalidInputError, match=str(backend.folder)), backend.connect():
        pass


def test_a_checkpoint_empties_the_log_and_keeps_the_events(backend, end):
    put(end, data=bytes(100_000))
    assert log_size(backend) > 100_000
    Checkpointer(backend.folder).cut()
    assert log_size(backend) == 0
    (taken,) = end.lanes.take(10)
    assert taken.data == bytes(100_000)


def test_a_reader_that_takes_long_only_puts_a_checkpoint_off(backend, end, monkeypatch):
    with closing(sqlite3.connect(backend.folder / FILE, isolation_level=None)) as reader:
        put(end)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM batches").fetchone() == (1,)
        put(end)
        ours = Checkpointer(backend.folder)
        ours.cut()
        assert log_size(backend) > 0
        # Nor do writers wait for the reader, however long the log is.
        monkeypatch.setattr(checkpointer, "LONG_LOG", 0)
        monkeypatch.setattr(ours, "begin_anew", lambda: pytest.fail("writers would wait"))
        ours.look()
        assert put(end)
        reader.execute("COMMIT")
    Checkpointer(backend.folder).cut()
    assert log_size(backend) == 0


def test_a_driver_keeps_the_log_short_while_it_owns_the_state(backend, end, monkeypatch):
    monkeypatch.setattr(checkpointer, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(checkpointer, "LARGEST_LOG", 100_000)
    with backend.own():
        put(end, data=bytes(200_000))
        eventually(lambda: log_size(backend) == 0)
    put(end, data=bytes(200_000))
    assert log_size(backend) > 200_000


def test_a_long_log_is_begun_anew(backend, end, monkeypatch):
    monkeypatch.setattr(checkpointer, "LONG_LOG", 60)
    ours = Checkpointer(backend.folder)
    sizes = []
    for _ in range(10):
        put(end, data=bytes(100_000))
        ours.look()
        sizes.append(log_size(backend))
    assert max(sizes) < 500_000
    assert len(end.lanes.take(1000)) == 10


def test_under_a_flood_the_log_is_left_to_grow(backend, end, monkeypatch):
    monkeypatch.setattr(checkpointer, "FLOOD", 50_000)
    ours = Checkpointer(backend.folder)
    ours.look()
    monkeypatch.setattr(ours, "copy", lambda: pytest.fail("it would be written once more"))
    for _ in range(5):
        put(end, data=bytes(100_000))
        ours.look()
    assert log_size(backend) > 500_000


def test_a_log_that_nobody_writes_to_is_left_alone(backend, end, monkeypatch):
    ours = Checkpointer(backend.folder)
    put(end)
    ours.look()
    monkeypatch.setattr(ours, "copy", lambda: pytest.fail("there was nothing to copy"))
    ours.look()
