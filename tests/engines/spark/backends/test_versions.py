"""State folders of other versions: an older one is resumed, an unknown one is left alone."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from elastream.core.lanes import lanes_of_keys
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite import SqliteBackend, versions
from elastream.engines.spark.births import Births
from elastream.engines.spark.worker.execution import events_of
from elastream.errors import InvalidInputError

SCHEMA = Path(__file__).with_name("schema_v1.sql").read_text()
PIPELINE = "words: in -> work, work -> store"
LAYOUT = {
    "in": OperatorLanes(1),
    "work": OperatorLanes(8, key="word"),
    "store": OperatorLanes(4),
    "pulled": OperatorLanes(4, shared=True),
}
WORDS = [f"word {n % 5}" for n in range(30)]


def events(numbers):
    return to_bytes(pa.table({"n": list(numbers), "word": [WORDS[n] for n in numbers]}))


@pytest.fixture
def old(tmp_path):
    """A connection to a state of version 1, as a killed run leaves it."""
    folder = tmp_path / "state"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "elastream.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = 1; COMMIT;")
        db.execute("INSERT INTO meta VALUES ('pipeline', ?)", (PIPELINE,))
        db.execute("INSERT INTO members VALUES ('work', 0, '1234:abc', 1700000000)")
        db.execute('INSERT INTO plans (content) VALUES (\'{"active": {"work": [0]}}\')')
        db.execute("INSERT INTO words VALUES ('in', 0, 'work', 0, 'SyncReply', x'80049503')")
        yield db


def put(db, operator, replica, numbers, data=None, taken_by=None):
    numbers = list(numbers)
    db.execute(
        "INSERT INTO batches (operator, replica, taken_by, events, born, data) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (operator, replica, taken_by, len(numbers), 100.0 + numbers[0], data or events(numbers)),
    )


def resumed(db, layout=LAYOUT):
    db.commit()
    (file,) = [Path(row[2]) for row in db.execute("PRAGMA database_list")]
    db.close()
    backend = SqliteBackend(file.parent)
    backend.prepare(PIPELINE, layout)
    return backend


def taken_from(backend, operator, lanes, shared=False):
    with backend.connect() as end:
        end.lanes.join((operator, 0), 1)
        end.lanes.hold(frozenset(lanes))
        return end.lanes.take(1000, shared)


def numbers(taken):
    return [n for each in taken for n in events_of(each).table["n"].to_pylist()]


def test_a_backlog_is_resumed_on_lanes(old):
    for replica in range(3):
        put(old, "work", replica, range(replica, 30, 3))
        put(old, "store", replica, [replica, replica + 3])
        put(old, "pulled", SHARED_LANE, [replica], taken_by="1234:abc" if replica else None)
    put(old, "in", 0, [7])
    backend = resumed(old)
    with backend.connect() as end:
        totals = end.ledger.totals()
    assert [totals.waiting(name) for name in LAYOUT] == [1, 30, 6, 3]
    seen = []
    for lane in range(8):
        taken = taken_from(backend, "work", {lane})
        of_lane = numbers(taken)
        assert set(lanes_of_keys([WORDS[n] for n in of_lane], 8).tolist()) <= {lane}
        seen += of_lane
        with backend.connect() as end:
            end.board.dismiss()
    assert sorted(seen) == list(range(30))
    assert sorted(numbers(taken_from(backend, "store", range(4)))) == list(range(6))
    assert numbers(taken_from(backend, "pulled", (), shared=True)) == [0, 1, 2]
    (relayed,) = taken_from(backend, "in", {0})
    assert (numbers([relayed]), relayed.births.times().tolist()) == ([7], [107.0])


def test_counts_and_dead_letters_are_kept(old):
    old.execute("INSERT INTO counts VALUES ('work', 1, 10, 20, 3, 0.5, 0.25)")
    old.execute("INSERT INTO sent VALUES ('work', 1, 'store', 17, 2)")
    old.execute("INSERT INTO latencies VALUES ('store', 0, 500, 4)")
    old.execute("INSERT INTO counts VALUES ('store', 0, 4, 0, 0, 0, 0)")
    for replica in (1, SHARED_LANE):
        old.execute(
            "INSERT INTO dead_letters (operator, replica, events, error, data, time) "
            "VALUES ('work', ?, 1, 'ValueError: no', ?, 123.5)",
            (replica, events([4])),
        )
    backend = resumed(old)
    with backend.connect() as end:
        counts = end.ledger.totals().counts
        assert counts["work", 1][:5] == (10, 20, 3, 0.5, 0.25)
        assert (counts["work", 1].sent, counts["work", 1].lost) == ({"store": 17}, {"store": 2})
        assert counts["store", 0].latency.bins == {500: 4}
        letters = list(end.dead_letters.read())
        assert [(each.error, each.time) for each in letters] == [("ValueError: no", 123.5)] * 2
        assert end.dead_letters.retry(letters) == 2
    assert numbers(taken_from(backend, "work", range(8))) == [4, 4]


def test_members_plans_and_words_of_another_version_mean_nothing(old):
    with resumed(old).connect() as end:
        assert end.board.members() == {}
        assert end.board.plan().active == {}
        assert end.board.feedback(("in", 0), ["work"], 0)[1] == []
        end.board.publish(LanePlan({"work": (0,)}, {"work": (0,) * 8}))
        assert end.board.plan().active == {"work": (0,)}


def test_what_was_staged_and_admitted_is_kept(old):
    old.execute("INSERT INTO feeds VALUES ('in', 41)")
    old.execute(
        "INSERT INTO staged (source, parcel, events, data) VALUES ('in', 'task', 2, ?)",
        (events([1, 2]),),
    )
    backend = resumed(old)
    with closing(backend.inbox("in")) as inbox:
        assert inbox.admitted() == 41
        assert inbox.admit(42, {"task": 2})
    assert numbers(taken_from(backend, "in", {0})) == [1, 2]


@pytest.mark.parametrize("left", ["something", "an older batch", "nothing"])
def test_outputs_go_on_after_the_numbers_that_readers_remember(old, left):
    """Also when what had the highest numbers is gone: a number must not come again."""
    output = output_of("store")
    for number in range(9):
        put(old, output, 0, [number], data=b"%d" % number)
    if left == "an older batch":
        put(old, "work", 0, [1])
        old.execute("UPDATE batches SET ticket = 0 WHERE operator = 'work'")
    old.execute("INSERT INTO outputs VALUES (?, 9, 9)", (output,))
    kept = 10 if left == "something" else 0
    if kept:
        put(old, output, 0, [9], data=b"9")
    old.execute("DELETE FROM batches WHERE operator = ? AND ticket < 10", (output,))
    backend = resumed(old)
    with backend.connect() as end, closing(backend.outbox("store")) as outbox:
        assert (outbox.consumed(), outbox.newest()) == (9, kept or 9)
        end.lanes.join(("store", 0), 1)
        parcel = Parcel(output, 0, 1, Births.evenly(1, time.time()), b"new")
        assert end.lanes.commit([], [parcel], Counts())
        expected = [b"9", b"new"] if kept else [b"new"]
        assert list(outbox.read(outbox.consumed(), outbox.newest())) == expected


def test_an_older_state_is_brought_up_to_date_once(old):
    put(old, "store", 0, [1])
    backend = resumed(old)
    for _ in range(2):
        with backend.connect() as end:
            assert end.ledger.totals().waiting("store") == 1
    with closing(sqlite3.connect(backend.folder / "elastream.db")) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
        assert db.execute("PRAGMA user_version").fetchone() == (versions.NEWEST,)
    assert not [name for name in tables if name.startswith("old_") or name == "words"]


def test_an_unknown_version_is_refused_with_what_to_do_and_left_alone(old):
    old.execute("PRAGMA user_version = 7")
    with pytest.raises(
        InvalidInputError,
        match=f"version 7, and this elastream knows versions 1 to {versions.NEWEST}: use the elas",
    ):
        resumed(old)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "elastream.db").write_text("shopping: bread, milk, a newspaper, and so on\n" * 100)
    with pytest.raises(InvalidInputError, match="cannot be used: file is not a database"):
        SqliteBackend(tmp_path).prepare(PIPELINE, LAYOUT)


# States as elastream of that time has left them: see `make_state_v1.py` and so on.


def left_by(version, folder):
    """A state of that version, as its run has left it."""
    (folder / "state").mkdir()
    with closing(sqlite3.connect(folder / "state" / "elastream.db")) as db:
        db.executescript(Path(__file__).with_name(f"state_v{version}.sql").read_text())
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
    return SqliteBackend(folder / "state")


def test_a_backlog_from_before_there_were_lanes_is_resumed_on_lanes(tmp_path):
    backend = left_by(1, tmp_path)
    layout = LAYOUT_V2 | {"work": OperatorLanes(8, key="key")}
    backend.prepare(PIPELINE_V2, layout)
    with backend.connect() as end:
        totals = end.ledger.totals()
        assert [totals.waiting(name) for name in layout] == [1, 50, 2]
        assert totals.counts["in", 0].sent == {"work": 60}
        assert totals.counts["work", 0][:5] == (10, 2, 0, 0.5, 0.25)
        assert totals.counts["work", 0].latency.bins == {500: 8}
        (letter,) = end.dead_letters.read()
        assert letter.error == "ValueError: no"
        assert end.dead_letters.retry([letter]) == 1
    seen = []
    for lane in range(8):
        with backend.connect() as end:
            end.board.dismiss()
        taken = numbers(taken_from(backend, "work", {lane}))
        assert set(lanes_of_keys([n % 5 for n in taken], 8).tolist()) <= {lane}
        for key in range(5):
            of_key = [n for n in taken if n % 5 == key and n != 64]
            assert of_key == sorted(of_key), "a queue that came first is taken first"
        seen += taken
    assert sorted(seen) == [*range(10, 60), 64]
    assert numbers(taken_from(backend, "pulled", (), shared=True)) == [60, 61]
    assert numbers(taken_from(backend, "in", {0})) == [65]
    with closing(backend.inbox("in")) as inbox, closing(backend.outbox("work")) as outbox:
        assert inbox.admitted() == 41
        (data,) = outbox.read(outbox.consumed(), outbox.newest())
        assert from_bytes(data)["n"].to_pylist() == [63]


PIPELINE_V2 = "words: in -> work, work -> pulled"
LAYOUT_V2 = {
    "in": OperatorLanes(1),
    "work": OperatorLanes(4, key="n"),
    "pulled": OperatorLanes(2, shared=True),
}


@pytest.fixture(params=[2, 3, 4])
def on_lanes(request, tmp_path):
    """A state of that version, brought up to date."""
    backend = left_by(request.param, tmp_path)
    backend.prepare(PIPELINE_V2, LAYOUT_V2)
    return backend


def test_a_state_with_lanes_is_resumed_with_all_that_it_kept(on_lanes):
    with on_lanes.connect() as end:
        totals = end.ledger.totals()
        assert [totals.waiting(name) for name in LAYOUT_V2] == [1, 4, 2]
        assert totals.counts["in", 0].sent == {"work": 7}
        assert totals.counts["work", 0].processed == 1
        assert [letter.error for letter in end.dead_letters.read()] == ["ValueError: no"]
    assert sorted(numbers(taken_from(on_lanes, "work", range(4)))) == [1, 3, 5, 6]
    assert numbers(taken_from(on_lanes, "pulled", (), shared=True)) == [9, 10]
    assert numbers(taken_from(on_lanes, "in", {0})) == [12]
    with closing(on_lanes.inbox("in")) as inbox, closing(on_lanes.outbox("work")) as outbox:
        assert inbox.admitted() == 41
        assert (outbox.consumed(), outbox.newest()) == (1, 2)


def test_units_of_an_earlier_version_get_names(on_lanes):
    with on_lanes.connect() as end:
        end.lanes.join(("work", 0), 2)
        end.lanes.hold(frozenset({0, 1, 2, 3}))
        taken = end.lanes.take(100, named=True)
        assert [each.unit.attempt for each in taken] == [1, 1]


def test_members_of_an_earlier_version_can_fail(on_lanes):
    with on_lanes.connect() as end:
        end.board.report_failure(7, ("work", 0), "no database today")
        assert end.board.failures(7) == {("work", 0): "no database today"}


def test_a_state_of_every_version_is_kept():
    kept = {int(path.stem[-1]) for path in Path(__file__).parent.glob("state_v*.sql")}
    assert kept == set(range(1, versions.NEWEST))
