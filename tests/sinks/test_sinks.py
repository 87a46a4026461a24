import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest

from elastream.core.topology import Operator
from elastream.engines.spark.worker.function import UserFunction
from elastream.errors import InvalidInputError
from elastream.sinks import Print, Table


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


@pytest.mark.parametrize(
    ("target", "table", "message"),
    [
        ("mysql://here", "prices", "give the path of an SQLite file"),
        ("/no/such/folder/shop.db", "prices", "a folder that exists"),
        ("shop.db", "prices; DROP TABLE x", "letters, digits"),
    ],
)
def test_a_table_that_cannot_be_is_refused_at_once(target, table, message):
    with pytest.raises(InvalidInputError, match=message):
        Table(target, table, key="id")


def test_printing_shows_every_event_and_hands_it_on(capsys):
    assert written(Print(), [{"id": 1}, {"id": 2}]) == [[{"id": 1}, {"id": 2}]]
    assert capsys.readouterr().err == '{"id": 1}\n{"id": 2}\n'
