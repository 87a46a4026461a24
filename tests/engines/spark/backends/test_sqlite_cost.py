"""What taking and committing cost in SQLite, where queues are long and batches large."""

import pytest

from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite.database import FILE
from elastream.engines.spark.backends.sqlite.lanes import CONSUME
from elastream.engines.spark.backends.sqlite.waiting import HEADS, IN_LANE, ROWS, Row
from elastream.engines.spark.births import Births

LARGE = 500_000


def batch(events=10, lane=0, data=b""):
    return Parcel("work", lane, events, Births.evenly(events, 1.0), data)


@pytest.mark.parametrize(
    ("query", "values"),
    [
        (HEADS, ("work", 0, 0, 2, 9, 2)),
        (ROWS, ("work", 0, 0)),
        (CONSUME, (10, True, 10, "work", 0, 1, 1)),
        (f"SELECT number FROM batches WHERE {IN_LANE}", ("work", 0)),
    ],
)
def test_what_is_next_is_found_without_sorting_what_waits(end, query, values):
    steps = end.lanes._db.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
    assert not [step for *_, step in steps if "TEMP B-TREE" in step or "SCAN" in step]


def test_a_batch_that_finds_its_lane_empty_is_in_no_index(backend, end):
    """Most do, and each page that a commit changes is written as a whole."""
    log, pages = backend.folder / f"{FILE}-wal", []
    for batches in (1, 2):
        before = log.stat().st_size
        end.lanes.commit([], [batch() for _ in range(batches)], Counts(processed=10))
        pages.append((log.stat().st_size - before) // 4096)
        assert end.lanes.commit(end.lanes.take(100), [], Counts())
    assert pages == [3, 4]


def test_only_what_is_taken_is_read(end, monkeypatch):
    end.lanes.commit([], [batch(), batch(), batch(lane=1)], Counts())
    read, make = [], Row._make
    monkeypatch.setattr(Row, "_make", lambda values: read.append(values) or make(values))
    (taken,) = end.lanes.take(12)
    assert taken.events == 10
    assert len(read) == 1
    assert end.lanes.more


def test_a_batch_that_waits_alone_is_taken_in_one_statement(end):
    """Where more waits, or waited the last time, it takes a transaction."""
    statements = []
    end.lanes._db.set_trace_callback(statements.append)

    def taken(most):
        statements.clear()
        found = end.lanes.take(most)
        words = [statement.split()[0] for statement in statements]
        assert end.lanes.commit(found, [], Counts())
        return [each.events for each in found], words

    end.lanes.commit([], [batch()], Counts())
    assert taken(10) == ([10], ["SELECT"])
    assert taken(10) == ([], ["SELECT"])
    end.lanes.commit([], [batch(), batch(lane=1)], Counts())
    assert taken(10) == ([10], ["SELECT", "BEGIN", "SELECT", "COMMIT"])
    assert taken(10) == ([10], ["BEGIN", "SELECT", "SELECT", "COMMIT"])
    assert taken(10) == ([], ["SELECT"])


def test_a_batch_that_is_done_is_not_written_again(backend, end):
    log = backend.folder / f"{FILE}-wal"
    end.lanes.commit([], [batch(data=bytes(LARGE))], Counts())
    before = log.stat().st_size
    assert end.lanes.commit(end.lanes.take(10), [], Counts())
    assert log.stat().st_size - before < LARGE / 2


@pytest.mark.parametrize("large", [False, True])
def test_a_batch_that_is_passed_on_as_it_came_is_written_once(backend, end, large):
    """Also where it goes to several operators, and whoever passes it on next."""
    log = backend.folder / f"{FILE}-wal"
    data = bytes(LARGE if large else 10)
    end.lanes.commit([], [batch(data=data)], Counts())
    before = log.stat().st_size
    for successors in (2, 1, 0, 1):
        taken = end.lanes.take(10)
        results = [batch(data=each.data) for each in taken for _ in range(successors)]
        assert end.lanes.commit(taken, results, Counts())
    (last,) = end.lanes.take(10)
    assert last.data == data
    assert end.lanes.commit([last], [], Counts())
    assert log.stat().st_size - before < LARGE / 2
    assert end.lanes._db.execute("SELECT count(*) FROM parcels").fetchone() == (0,)


def test_what_several_successors_get_is_written_once(backend, end):
    log = backend.folder / f"{FILE}-wal"
    before, data = log.stat().st_size, bytes(LARGE)
    end.lanes.commit([], [batch(data=data), batch(lane=1, data=data)], Counts())
    assert log.stat().st_size - before < 1.5 * LARGE
    assert [each.data for each in end.lanes.take(20)] == [data, data]


def test_a_backlog_that_was_worked_off_leaves_its_room_to_the_next(end):
    """Also where it was passed on: the file stays as large as its fullest moment."""
    pages = []
    for _ in range(3):
        end.lanes.commit([], [batch(data=bytes(LARGE)) for _ in range(10)], Counts())
        for to in (1, None):
            for _ in range(10):
                taken = end.lanes.take(10)
                results = [] if to is None else [batch(lane=to, data=taken[0].data)]
                assert end.lanes.commit(taken, results, Counts())
        assert end.lanes.take(10) == []
        pages += end.lanes._db.execute("PRAGMA page_count").fetchone()
    assert pages[2] == pages[0]
