import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pyarrow as pa
import pytest

from elastream.errors import InvalidInputError
from elastream.workloads.live.store import store_into
from elastream.workloads.live.tables import StoreTable

TABLE = StoreTable(
    "events", {"id": "BIGINT", "user": "TEXT", "score": "DOUBLE PRECISION", "known": "BOOLEAN"}
)


def events(first, count):
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "ignored": pa.array(numbers, pa.int64()),
            "known": [number % 2 == 0 for number in numbers],
            "score": pa.array([None if n % 3 else n / 2 for n in numbers], pa.float64()),
            "user": [f"user {number}" for number in numbers],
        }
    )


def store_as_one_replica(target, batches):
    step = store_into(target, TABLE)
    opened = step.setup()
    try:
        for batch in batches:
            assert step.function(batch, opened) is batch
    finally:
        step.teardown(opened)


def rows_of_sqlite(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM events ORDER BY id").fetchall()


def rows_of_postgresql(url):
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute("SELECT * FROM events ORDER BY id").fetchall()


@pytest.fixture
def sqlite(tmp_path):
    return tmp_path / "store.db", rows_of_sqlite


@pytest.fixture
def postgresql(postgresql_url):
    import psycopg

    with psycopg.connect(postgresql_url) as connection:
        connection.execute("DROP TABLE IF EXISTS events")
    return postgresql_url, rows_of_postgresql


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """Where to store, and how to read what was stored."""
    return request.getfixturevalue(request.param)


def test_an_event_is_stored_once(database):
    target, rows = database
    store_as_one_replica(target, [events(0, 3), events(1, 4), events(5, 0)])
    assert rows(target) == [
        (0, "user 0", 0.0, True),
        (1, "user 1", None, False),
        (2, "user 2", None, True),
        (3, "user 3", 1.5, False),
        (4, "user 4", None, True),
    ]


def test_the_first_version_of_an_event_stays(database):
    target, rows = database
    store_as_one_replica(target, [events(0, 1)])
    other = events(0, 1).set_column(4, "user", pa.array(["somebody else"]))
    store_as_one_replica(target, [other])
    assert rows(target) == [(0, "user 0", 0.0, True)]


def test_replicas_that_start_at_once_store_overlapping_events(database):
    target, rows = database
    reversed_order = pa.array(range(49, -1, -1))
    shares = [
        [events(25 * step, 50).take(reversed_order) if replica % 2 else events(25 * step, 50)
         for step in range(20)]
        for replica in range(6)
    ]  # fmt: skip
    with ThreadPoolExecutor(len(shares)) as replicas:
        list(replicas.map(lambda batches: store_as_one_replica(target, batches), shares))
    assert [row[0] for row in rows(target)] == list(range(525))


def test_a_replica_waits_while_another_program_writes_to_a_file_without_a_log(sqlite):
    path, rows = sqlite
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        ThreadPoolExecutor(1) as replica,
    ):
        other.execute("CREATE TABLE mine (id INTEGER)")
        other.execute("BEGIN IMMEDIATE")
        storing = replica.submit(store_as_one_replica, path, [events(0, 2)])
        with pytest.raises(TimeoutError):
            storing.result(timeout=0.05)
        other.execute("COMMIT")
        storing.result(timeout=10)
    assert [row[0] for row in rows(path)] == [0, 1]


def test_a_batch_that_fails_leaves_nothing_behind(sqlite):
    path, rows = sqlite
    step = store_into(path, TABLE)
    opened = step.setup()
    with pytest.raises(sqlite3.Error):
        opened.insert([[1, 2], ["a", object()], [0.5, 0.5], [True, True]])
    step.function(events(7, 1), opened)
    step.teardown(opened)
    assert [row[0] for row in rows(path)] == [7]


def test_a_cut_connection_is_made_again(postgresql):
    import psycopg

    url, rows = postgresql
    step = store_into(url, TABLE)
    opened = step.setup()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(psycopg.Error):
        step.function(events(0, 1), opened)
    step.function(events(0, 1), opened)
    step.teardown(opened)
    assert [row[0] for row in rows(url)] == [0]


def test_a_server_that_is_not_there_is_named(tmp_path):
    step = store_into(f"postgresql:///db?host={tmp_path}", TABLE)
    with pytest.raises(InvalidInputError, match="PostgreSQL store cannot be opened"):
        step.setup()


@pytest.mark.parametrize("target", ["mysql://user:secret@host/db", "sqlite:///x.db"])
def test_other_databases_are_refused_without_telling_secrets(target):
    with pytest.raises(InvalidInputError, match=r"give the path of an SQLite file") as caught:
        store_into(target, TABLE)
    assert "secret" not in str(caught.value)


def test_a_folder_that_is_not_there_is_named_before_anything_runs(tmp_path):
    with pytest.raises(InvalidInputError, match="folder that exists"):
        store_into(tmp_path / "none" / "store.db", TABLE)
    with pytest.raises(InvalidInputError, match="folder that exists"):
        store_into(tmp_path, TABLE)
