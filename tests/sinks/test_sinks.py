import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pyarrow as pa
import pytest

from elastream.core.context import Context
from elastream.core.topology import Operator
from elastream.engines.spark.worker.function import UserFunction
from elastream.errors import InvalidInputError
from elastream.sinks import Print, Table, stores


def rows_of(file, query):
    with closing(sqlite3.connect(file)) as db:
        return db.execute(query).fetchall()


def written(sink, *batches):
    """As a replica does it."""
    called = UserFunction(Operator("sink", sink))
    with called.ready():
        return [called(pa.Table.from_pylist(batch)).to_pylist() for batch in batches]


def test_a_table_keeps_the_last_event_of_every_key(tmp_path):
    file, first = tmp_path / "shop.db", [{"id": 1, "total": 2.5}, {"id": 2, "total": 1.0}]
    handed_on = written(Table(file, "prices", key="id"), first, [{"id": 1, "total": 9.0}])
    assert handed_on[0] == first
    assert rows_of(file, "SELECT id, total FROM prices ORDER BY id") == [(1, 9.0), (2, 1.0)]


def test_writing_again_changes_nothing(tmp_path):
    file, batch = tmp_path / "shop.db", [{"id": n, "total": float(n)} for n in range(5)]
    for _ in range(2):
        written(Table(file, "prices", key="id"), batch, batch)
    assert rows_of(file, "SELECT count(*), sum(total) FROM prices") == [(5, 10.0)]


ROWS = [{"id": n} for n in range(6)]


def unit(name="unit", first=0, attempt=1):
    return Context("sink", 0, name, attempt, first)


@pytest.fixture
def log(tmp_path):
    """A table without a key, and what is in it."""
    sink = Table(tmp_path / "log.db", "log")
    sink.setup()
    yield sink, lambda: [n for (n,) in rows_of(tmp_path / "log.db", "SELECT id FROM log")]
    sink.close()


def test_without_a_key_every_event_is_a_row(log):
    sink, stored = log
    sink(ROWS[:2], unit("a"))
    sink(ROWS[:2], unit("b"))
    assert stored() == [0, 1, 0, 1]


def test_a_unit_that_comes_again_is_not_written_again(log):
    sink, stored = log
    for attempt in (1, 2):
        assert sink(ROWS, unit(attempt=attempt)) == ROWS
    assert stored() == list(range(6))


def test_of_a_unit_that_was_written_in_parts_only_what_is_missing_is_written(log):
    """An error may pass: then a unit whose first half was written comes as a whole, or in parts."""
    sink, stored = log
    sink(ROWS[:3], unit())
    sink(ROWS, unit(attempt=2))
    assert stored() == list(range(6))
    for place, row in enumerate(ROWS):
        sink([row], unit(first=place, attempt=3))
    assert stored() == list(range(6))


def test_a_unit_that_cannot_be_written_is_not_noted(log):
    sink, stored = log
    sink([{"id": 1}], unit("first"))
    with pytest.raises(sqlite3.Error):
        sink([{"id": 2}, {"id": object()}], unit())
    assert stored() == [1]
    sink([{"id": 2}, {"id": 3}], unit(attempt=2))
    assert stored() == [1, 2, 3]


def test_a_late_repetition_does_not_undo_what_came_after(tmp_path):
    sink = Table(tmp_path / "shop.db", "prices", key="id")
    sink.setup()
    old, new = [{"id": 1, "total": 1.0}], [{"id": 1, "total": 2.0}]
    for rows, name in ((old, "old"), (new, "new"), (old, "old")):
        sink(rows, unit(name))
    sink.close()
    assert rows_of(tmp_path / "shop.db", "SELECT id, total FROM prices") == [(1, 2.0)]


def test_a_column_that_comes_later_is_refused_rather_than_lost(log):
    sink, stored = log
    sink(ROWS[:1], unit("a"))
    with pytest.raises(InvalidInputError, match="has the columns id, but an event also has 'more'"):
        sink([{"id": 1, "more": 2}], unit("b"))
    assert stored() == [0]


def test_notes_are_forgotten_when_a_sink_has_gone_on_for_long_and_not_before(tmp_path, monkeypatch):
    """By what was written since, and not by the clock: that may leap ahead and come back."""
    monkeypatch.setattr(stores, "_UNITS_KEPT", 3)
    file = tmp_path / "log.db"

    def write(name, table="log", when="2020-01-01 00:00:00"):
        sink = Table(file, table)
        sink.setup()
        sink(ROWS[:1], unit(name))
        sink.close()
        with closing(sqlite3.connect(file)) as db, db:
            db.execute("UPDATE elastream_units SET stored = ? WHERE unit = ?", (when, name))

    def noted():
        sink = Table(file, "log")
        sink.setup()
        sink.close()
        return [name for (name,) in rows_of(file, "SELECT unit FROM elastream_units ORDER BY 1")]

    write("1")
    write("2", when="2040-01-01 00:00:00")
    write("3")
    assert noted() == ["1", "2", "3"]
    for number in range(5):
        write(f"other {number}", "other")
    assert noted() == ["1", "2", "3", "other 2", "other 3", "other 4"], "a sink's own count"
    write("4")
    write("5")
    assert noted()[:3] == ["3", "4", "5"]


def test_two_tables_of_one_file_are_two_sinks(tmp_path):
    for table in ("one", "two"):
        sink = Table(tmp_path / "both.db", table)
        sink.setup()
        sink(ROWS, unit())
        sink.close()
    assert rows_of(tmp_path / "both.db", "SELECT count(*) FROM two") == [(6,)]


def test_a_key_may_be_of_several_columns_and_all_there_is(tmp_path):
    file = tmp_path / "seen.db"
    written(
        Table(file, "seen", key=("shop", "id")), [{"shop": "a", "id": 1}, {"shop": "b", "id": 1}]
    )
    assert rows_of(file, "SELECT * FROM seen ORDER BY shop") == [("a", 1), ("b", 1)]


def test_an_event_without_its_key_is_refused_and_the_batch_is_not_written(tmp_path):
    file = tmp_path / "shop.db"
    with pytest.raises(InvalidInputError, match="needs the key 'id'"):
        written(Table(file, "prices", key="id"), [{"total": 1.0}])


def test_of_given_columns_only_those_are_written_with_their_types(tmp_path):
    file = tmp_path / "shop.db"
    columns = {"id": "BIGINT", "total": "DOUBLE PRECISION", "note": "TEXT"}
    row = {"note": None, "id": 1, "ignored": "x", "total": None}
    written(Table(file, "prices", key="id", columns=columns), [row])
    assert rows_of(file, "SELECT * FROM prices") == [(1, None, None)]
    declared = rows_of(file, "SELECT name, type FROM pragma_table_info('prices')")
    assert dict(declared) == columns


def test_a_replica_waits_while_another_program_writes_to_a_file_without_a_log(tmp_path):
    file = tmp_path / "shop.db"
    with (
        closing(sqlite3.connect(file, isolation_level=None)) as other,
        ThreadPoolExecutor(1) as replica,
    ):
        other.execute("CREATE TABLE mine (id INTEGER)")
        other.execute("BEGIN IMMEDIATE")
        writing = replica.submit(written, Table(file, "log"), ROWS)
        with pytest.raises(TimeoutError):
            writing.result(timeout=0.05)
        other.execute("COMMIT")
        writing.result(timeout=10)
    assert rows_of(file, "SELECT count(*) FROM log") == [(6,)]


@pytest.mark.parametrize(
    ("target", "table", "message"),
    [
        ("mysql://me:secret@here", "prices", "give the path of an SQLite file"),
        ("/no/such/folder/shop.db", "prices", "a folder that exists"),
        ("/", "prices", "a folder that exists"),
        ("shop.db", "prices; DROP TABLE x", "letters, digits"),
    ],
)
def test_a_table_that_cannot_be_is_refused_at_once(target, table, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        Table(target, table, key="id")
    assert "secret" not in str(caught.value)


def test_a_key_that_is_no_column_is_refused_at_once():
    with pytest.raises(InvalidInputError, match="the key 'id' of the table 'prices' is not among"):
        Table("shop.db", "prices", key="id", columns={"total": "DOUBLE PRECISION"})


def test_printing_shows_every_event_and_hands_it_on(capsys):
    assert written(Print(), [{"id": 1}, {"id": 2}]) == [[{"id": 1}, {"id": 2}]]
    assert capsys.readouterr().err == '{"id": 1}\n{"id": 2}\n'
