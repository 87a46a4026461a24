"""A sink that keeps one row per key in a table of SQLite or PostgreSQL."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol
from zlib import crc32

from elastream.errors import InvalidInputError, MissingExtraError

BUSY_SECONDS = 30.0
RETRY_SECONDS = 0.01
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE PRECISION"}
"""In words that SQLite and PostgreSQL share; everything else is text."""

Rows = Sequence[Mapping[str, Any]]


class Table:
    """Writes every event into a table, over the row that has its key.

    An event is written at least once, and writing it again changes nothing. Events of one key that
    different replicas write at the same time may overtake each other: give the operator
    `grouping="key"` and the same `key` where the last one counts. Every replica has its own
    connection; a batch is one transaction. The table is made from the first batch if it is missing.

    Args:
        target: The path of an SQLite file, or `postgresql://...`.
        table: Its name.
        key: The column, or columns, that say which row an event is.

    >>> import os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "shop.db")
    >>> prices = Table(file, "prices", key="id")
    >>> prices.setup()
    >>> _ = prices([{"id": 1, "total": 3.5}, {"id": 2, "total": 4.0}, {"id": 1, "total": 5.5}])
    >>> prices.close()
    >>> sqlite3.connect(file).execute("SELECT * FROM prices ORDER BY id").fetchall()
    [(1, 5.5), (2, 4.0)]
    """

    def __init__(self, target: str | Path, table: str, key: str | Sequence[str]) -> None:
        self.key = (key,) if isinstance(key, str) else tuple(key)
        for name in (table, *self.key):
            if not _NAME.fullmatch(name):
                raise InvalidInputError(
                    f"the name {name!r} of a table or column: letters, digits and '_' only"
                )
        if not self.key:
            raise InvalidInputError(f"the table {table!r}: name the column that is its key")
        self.table = self.__name__ = table
        scheme, is_url, _ = str(target).partition("://")
        self._postgresql = bool(is_url) and scheme in ("postgresql", "postgres")
        if is_url and not self._postgresql:
            raise InvalidInputError(
                f"the table {table!r} in {scheme}://...: give the path of an SQLite file, or "
                "postgresql://..."
            )
        # Replicas run in other processes, which may have another working folder.
        self._target = str(target) if is_url else str(Path(target).resolve())
        if not is_url and not Path(self._target).parent.is_dir():
            raise InvalidInputError(f"{target}: give a file in a folder that exists")
        self._store: _Store | None = None
        self._columns: tuple[str, ...] = ()

    def setup(self) -> None:
        """Connect."""
        self._store = (_PostgreSql if self._postgresql else _Sqlite)(self._target)

    def __call__(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Write them, and hand them on."""
        if rows:
            assert self._store is not None
            newest = {self._key_of(row): row for row in rows}
            if not self._columns:
                self._columns = tuple(rows[0])
                self._store.make(self.table, _declared(rows), self.key)
            columns = self._columns
            values = [[row.get(name) for name in columns] for row in newest.values()]
            self._store.write(_upsert(self.table, columns, self.key, self._store.mark), values)
        return rows

    def close(self) -> None:
        """Let go of the connection."""
        if self._store is not None:
            self._store.close()

    def _key_of(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        missing = [name for name in self.key if row.get(name) is None]
        if missing:
            there = ", ".join(row)
            raise InvalidInputError(
                f"the table {self.table!r} needs the key {missing[0]!r}, and an event has: {there}"
            )
        return tuple(row[name] for name in self.key)


class _Store(Protocol):
    mark: str

    def make(self, table: str, columns: Mapping[str, str], key: Sequence[str]) -> None: ...

    def write(self, statement: str, values: Sequence[Sequence[Any]]) -> None: ...

    def close(self) -> None: ...


class _Sqlite:
    mark = "?"

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

    def make(self, table: str, columns: Mapping[str, str], key: Sequence[str]) -> None:
        self._db.execute(_created(table, columns, key))

    def write(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(statement, values)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


class _PostgreSql:
    mark = "%s"

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("a table in PostgreSQL", "applications") from None
        try:
            self._db = psycopg.connect(url)
        except psycopg.Error as error:
            raise InvalidInputError(
                f"PostgreSQL cannot be reached ({error}): check the URL and the server"
            ) from error

    def make(self, table: str, columns: Mapping[str, str], key: Sequence[str]) -> None:
        with self._db.transaction():
            # Two replicas that make the same table at once would disturb each other.
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (crc32(table.encode()),))
            self._db.execute(_created(table, columns, key).encode())

    def write(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        # In the order of their values, so that replicas cannot lock each other out.
        with self._db.transaction(), self._db.cursor() as cursor:
            cursor.executemany(statement.encode(), sorted(values, key=repr))

    def close(self) -> None:
        self._db.close()


def _declared(rows: Rows) -> dict[str, str]:
    """The columns of the first row, with a type by the first value that there is of each."""
    declared = {}
    for name in rows[0]:
        if not _NAME.fullmatch(name):
            raise InvalidInputError(f"the column {name!r}: letters, digits and '_' only")
        found = next((row[name] for row in rows if row.get(name) is not None), None)
        declared[name] = _TYPES.get(type(found), "TEXT")
    return declared


def _created(table: str, columns: Mapping[str, str], key: Sequence[str]) -> str:
    declared = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    keys = ", ".join(f'"{name}"' for name in key)
    return f'CREATE TABLE IF NOT EXISTS "{table}" ({declared}, PRIMARY KEY ({keys}))'


def _upsert(table: str, columns: Sequence[str], key: Sequence[str], mark: str) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join(mark for _ in columns)
    keys = ", ".join(f'"{name}"' for name in key)
    rest = [name for name in columns if name not in key]
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in rest)
    then = f"DO UPDATE SET {changes}" if rest else "DO NOTHING"
    return f'INSERT INTO "{table}" ({names}) VALUES ({marks}) ON CONFLICT ({keys}) {then}'
