import sqlite3

import pytest

from elastream.transactions import transaction


@pytest.fixture
def db():
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.execute("CREATE TABLE events (id INTEGER PRIMARY KEY)")
    yield made
    made.close()


def insert(db, number):
    with transaction(db):
        db.execute("INSERT INTO events VALUES (?)", (number,))


def fail(db, *statements):
    """A block that does this, and then raises."""
    with transaction(db):
        for statement in statements:
            db.execute(statement)
        raise ZeroDivisionError


def stored(db):
    return [number for (number,) in db.execute("SELECT id FROM events")]


def test_all_of_it_or_nothing(db):
    insert(db, 1)
    with pytest.raises(ZeroDivisionError):
        fail(db, "INSERT INTO events VALUES (2)")
    assert stored(db) == [1]


def test_the_error_is_told_also_where_sqlite_has_rolled_back_by_itself(db):
    """As it does when the disk is full."""
    with pytest.raises(ZeroDivisionError):
        fail(db, "INSERT INTO events VALUES (2)", "ROLLBACK")
    insert(db, 1)
    assert stored(db) == [1]


def test_what_cannot_be_committed_leaves_no_transaction_open(db):
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("CREATE TABLE late (of INTEGER REFERENCES events DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(sqlite3.IntegrityError), transaction(db):
        db.execute("INSERT INTO late VALUES (7)")
    insert(db, 1)
    assert stored(db) == [1]
