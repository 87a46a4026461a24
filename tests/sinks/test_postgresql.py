"""The same table in a real PostgreSQL server."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from elastream.core.context import Context
from elastream.errors import InvalidInputError
from elastream.sinks import Table, stores

ROWS = [{"id": n, "text": f"text {n}"} for n in range(6)]


@pytest.fixture
def opened(postgresql_url):
    """A function that makes a sink, and one that says what is in its table."""
    sinks = []

    def make(table, **settings):
        sink = Table(postgresql_url, table, **settings)
        sink.setup()
        sinks.append(sink)
        return sink

    def stored(table):
        with psycopg.connect(postgresql_url) as db:
            return db.execute(f"SELECT id, text FROM {table} ORDER BY id, text").fetchall()

    yield make, stored
    for sink in sinks:
        sink.close()


def unit(name, first=0, attempt=1):
    return Context("sink", 0, name, attempt, first)


def everything():
    return [(row["id"], row["text"]) for row in ROWS]


def test_a_unit_that_comes_again_is_not_written_again_whole_or_in_parts(opened):
    make, stored = opened
    sink, name = make("log"), uuid.uuid4().hex
    sink(ROWS[:3], unit(name))
    sink(ROWS, unit(name, attempt=2))
    for place, row in enumerate(ROWS):
        sink([row], unit(name, place, 3))
    assert stored("log") == everything()


def test_a_late_repetition_does_not_undo_what_came_after(opened):
    make, stored = opened
    sink = make("newest", key="id")
    names = [uuid.uuid4().hex for _ in range(2)]
    for name, text in ((names[0], "old"), (names[1], "new"), (names[0], "old")):
        sink([{"id": 1, "text": text}], unit(name))
    assert stored("newest") == [(1, "new")]


def test_two_replicas_that_write_the_same_unit_at_once_write_it_once(opened):
    """The former owner of a lane may still be at it."""
    make, stored = opened
    sinks, name = [make("race") for _ in range(2)], uuid.uuid4().hex
    both = threading.Barrier(2)

    def write(sink, parts):
        both.wait()
        for first, last in parts:
            sink(ROWS[first:last], unit(name, first))

    threads = [
        threading.Thread(target=write, args=(sinks[0], [(0, 6)])),
        threading.Thread(target=write, args=(sinks[1], [(0, 3), (3, 6)])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored("race") == everything()


def test_replicas_that_write_the_same_keys_do_not_lock_each_other_out(opened):
    make, stored = opened
    rows = [{"id": n, "text": f"text {n}"} for n in range(60)]

    def write(replica):
        sink = make("shared", key="id")
        for first in range(0, 50, 5):
            part = rows[first : first + 10]
            sink(part[::-1] if replica % 2 else part, unit(uuid.uuid4().hex))

    with ThreadPoolExecutor(6) as replicas:
        list(replicas.map(write, range(6)))
    assert stored("shared") == [(row["id"], row["text"]) for row in rows[:55]]


def test_a_cut_connection_is_made_again(opened, postgresql_url):
    make, stored = opened
    sink = make("cut")
    with psycopg.connect(postgresql_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    name = uuid.uuid4().hex
    with pytest.raises(psycopg.Error):
        sink(ROWS, unit(name))
    sink(ROWS, unit(name, attempt=2))
    assert stored("cut") == everything()


def test_a_server_that_is_not_there_is_named(tmp_path):
    sink = Table(f"postgresql:///db?host={tmp_path}", "log")
    with pytest.raises(InvalidInputError, match="PostgreSQL cannot be reached"):
        sink.setup()


def test_notes_are_forgotten_by_what_was_written_since_and_old_tables_are_numbered(
    opened, postgresql_url, monkeypatch
):
    monkeypatch.setattr(stores, "_UNITS_KEPT", 3)
    make, _ = opened
    make("counted").close()
    with psycopg.connect(postgresql_url) as db:
        db.execute("ALTER TABLE elastream_units DROP COLUMN number")  # As it was before.
    names = [f"{number} {uuid.uuid4().hex}" for number in range(5)]
    for name in names:
        sink = make("counted")
        sink(ROWS[:1], unit(name))
    make("counted")
    with psycopg.connect(postgresql_url) as db:
        left = db.execute("SELECT unit FROM elastream_units ORDER BY number").fetchall()
    assert [name for (name,) in left if name in names] == names[-3:]
