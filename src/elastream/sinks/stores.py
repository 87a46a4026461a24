"""Databases that a table is kept in: a unit of work is written once, in one transaction.

The same transaction records the unit in a separate table, `elastream_units`. A unit that comes
again is skipped; if only parts of it were written, the missing ones are written. A record is kept
until its sink has written a million more units, whatever the clock says: a unit is repeated either
at once, or as the first thing when a run is resumed, however much later.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from time import monotonic, sleep
from typing import Any
from zlib import crc32

from elastream.core.context import Context
from elastream.errors import InvalidInputError, MissingExtraError
from elastream.transactions import transaction

BUSY_SECONDS = 30.0
RETRY_SECONDS = 0.01
_UNITS = (
    "CREATE TABLE IF NOT EXISTS elastream_units (sink TEXT, unit TEXT, first BIGINT, "
    "events BIGINT, stored TIMESTAMP DEFAULT CURRENT_TIMESTAMP, "
    "PRIMARY KEY (sink, unit, first, events))"
)
_NUMBERED = "ALTER TABLE elastream_units ADD COLUMN IF NOT EXISTS number BIGSERIAL"
_IS_NUMBERED = (
    "SELECT 1 FROM pg_attribute WHERE attrelid = 'elastream_units'::regclass "
    "AND attname = 'number' AND NOT attisdropped"
)
"""SQLite numbers rows by itself."""
_UNITS_KEPT = 1_000_000
"""Records per sink."""

Rows = Sequence[Mapping[str, Any]]


class Store(ABC):
    """A connection to a database, for one replica."""

    mark: str
    """What stands for a value in a statement."""
    order: str
    """The column that says which records came later."""

    @abstractmethod
    def make(self, statement: str) -> None:
        """Make a table, if it is missing."""

    @abstractmethod
    def begin(self, unit: str) -> AbstractContextManager[object]:
        """A transaction during which nobody else writes the same unit."""

    @abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; returns its rows, if any."""

    @abstractmethod
    def run_all(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Run one statement for each of the values."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def missing(self, sink: str, rows: Rows, context: Context) -> list[Mapping[str, Any]]:
        """The rows that are not written yet; from now on they count as written.

        Call this and write the rows in one transaction.
        """
        mark, start = self.mark, context.first
        done: set[int] = set()
        for first, events in self.run(
            f"SELECT first, events FROM elastream_units WHERE sink = {mark} AND unit = {mark}",
            (sink, context.unit),
        ):
            done.update(range(first, first + events))
        left = [row for place, row in enumerate(rows, start) if place not in done]
        if left:
            self.run(
                "INSERT INTO elastream_units (sink, unit, first, events) "
                f"VALUES ({mark}, {mark}, {mark}, {mark})",
                (sink, context.unit, start, len(rows)),
            )
        return left

    def forget(self) -> None:
        """Remove the oldest records of every sink that has written many."""
        mark, order = self.mark, self.order
        for (sink,) in self.run("SELECT DISTINCT sink FROM elastream_units"):
            for (oldest,) in self.run(
                f"SELECT {order} FROM elastream_units WHERE sink = {mark} "
                f"ORDER BY {order} DESC LIMIT 1 OFFSET {_UNITS_KEPT}",
                (sink,),
            ):
                self.run(
                    f"DELETE FROM elastream_units WHERE sink = {mark} AND {order} <= {mark}",
                    (sink, oldest),
                )


class Sqlite(Store):
    """A file."""

    mark = "?"
    order = "rowid"

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        patience = monotonic() + BUSY_SECONDS
        while True:  # Unlike all other statements, this one does not wait by itself.
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > patience:
                    raise
                sleep(RETRY_SECONDS)
        self._db.execute("PRAGMA synchronous = NORMAL")
        self.make(_UNITS)
        self.forget()

    def make(self, statement: str) -> None:
        """Simply do it."""
        self._db.execute(statement)

    def begin(self, unit: str) -> AbstractContextManager[object]:
        """Nobody else writes anything."""
        return transaction(self._db)

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Fetch all."""
        return self._db.execute(statement, values).fetchall()

    def run_all(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """In their order."""
        self._db.executemany(statement, values)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


class PostgreSql(Store):
    """A server."""

    mark = "%s"
    order = "number"

    def __init__(self, url: str) -> None:
        self._url = url
        self._db = _connected(url)
        self.make(_UNITS)
        if not self.run(_IS_NUMBERED):  # To ask does not wait for those who write.
            self.make(_NUMBERED)
        self.forget()

    def make(self, statement: str) -> None:
        """Two replicas that make the same table at once would disturb each other."""
        with self.begin(statement):
            self.run(statement)

    @contextmanager
    def begin(self, unit: str) -> Iterator[None]:
        """Hold a lock on the unit's name; a connection that was cut is made again."""
        if self._db.closed:
            self._db = _connected(self._url)
        with self._db.transaction():
            self._db.execute(b"SELECT pg_advisory_xact_lock(%s)", (crc32(unit.encode()),))
            yield

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Fetch all."""
        # As bytes, since psycopg takes texts for safe only when they are literals.
        cursor = self._db.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def run_all(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """In the order of their values, so that replicas cannot lock each other out."""
        with self._db.cursor() as cursor:
            cursor.executemany(statement.encode(), sorted(values, key=repr))

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def import_psycopg() -> Any:
    """PostgreSQL's driver, which is an extra."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError("a table in PostgreSQL", "postgresql") from None
    return psycopg


def _connected(url: str) -> Any:
    psycopg = import_psycopg()
    try:
        return psycopg.connect(url, autocommit=True)
    except psycopg.Error as error:
        raise InvalidInputError(
            f"PostgreSQL cannot be reached ({error}): check the URL and the server"
        ) from error
