"""A sink that keeps events in a table of SQLite or PostgreSQL, each once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elastream.core.context import Context
from elastream.errors import InvalidInputError
from elastream.sinks.stores import PostgreSql, Rows, Sqlite, Store, import_psycopg

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE PRECISION"}
"""In words that SQLite and PostgreSQL share; everything else is text."""


class Table:
    """Writes every event to a table once: it replaces the row with its key, or adds a row.

    A unit of work is one transaction, which also records the unit's name (`elastream.Context`). If
    a process dies after that and before the engine's own commit, the unit comes again, but is not
    written again. If several replicas write events of one key at the same time, these may overtake
    each other: where the last one must win, give the operator `grouping="key"` and the same `key`.
    Every replica has its own connection. If the table does not exist, the first batch creates it.

    Args:
        target: The path of an SQLite file, or `postgresql://...`.
        table: The name of the table.
        key: The column or columns that identify a row. Without a key, every event adds a row.
        columns: The columns to write, each with its SQL type. By default, those of the first batch,
            with types from its values.

    Examples:
        >>> import os, sqlite3, tempfile
        >>> file = os.path.join(tempfile.mkdtemp(), "shop.db")
        >>> prices = Table(file, "prices", key="id")
        >>> prices.setup()
        >>> _ = prices([{"id": 1, "total": 3.5}, {"id": 2, "total": 4.0}, {"id": 1, "total": 5.5}])
        >>> prices.close()
        >>> sqlite3.connect(file).execute("SELECT * FROM prices ORDER BY id").fetchall()
        [(1, 5.5), (2, 4.0)]
    """

    def __init__(
        self,
        target: str | Path,
        table: str,
        key: str | Sequence[str] = (),
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self._given = dict(columns or {})
        for name in (table, *self.key, *self._given):
            if not _NAME.fullmatch(name):
                raise InvalidInputError(
                    f"the name {name!r} of a table or column: letters, digits and '_' only"
                )
        for name in self.key if self._given else ():
            if name not in self._given:
                raise InvalidInputError(
                    f"the key {name!r} of the table {table!r} is not among its columns: "
                    f"{', '.join(self._given)}"
                )
        self.table = self.__name__ = table
        scheme, is_url, _ = str(target).partition("://")
        self._postgresql = bool(is_url) and scheme in ("postgresql", "postgres")
        if is_url and not self._postgresql:
            raise InvalidInputError(
                f"the table {table!r} in {scheme}://...: give the path of an SQLite file, or "
                "postgresql://..."
            )
        if self._postgresql:
            import_psycopg()
        # Replicas run in other processes, which may have another working folder.
        self._target = str(target) if is_url else str(Path(target).resolve())
        path = Path(self._target)
        if not is_url and (path.is_dir() or not path.parent.is_dir()):
            raise InvalidInputError(
                f"the table {table!r} in {target}: give a file in a folder that exists"
            )
        self._store: Store | None = None
        self._columns: tuple[str, ...] = ()

    def setup(self) -> None:
        """Connect."""
        self._store = (PostgreSql if self._postgresql else Sqlite)(self._target)

    def __call__(
        self, rows: list[dict[str, Any]], context: Context | None = None
    ) -> list[dict[str, Any]]:
        """Write them, unless that has happened, and hand them on."""
        if rows:
            assert self._store is not None
            for row in rows:
                self._key_of(row)
            if not self._columns:
                declared = self._given or _declared(rows)
                self._store.make(_created(self.table, declared, self.key))
                self._columns = tuple(declared)
            for unknown in () if self._given else rows[0].keys() - set(self._columns):
                there = ", ".join(self._columns)
                raise InvalidInputError(
                    f"the table {self.table!r} has the columns {there}, but an event also has "
                    f"{unknown!r}: give all events the same columns"
                )
            with self._store.begin(context.unit if context else self.table):
                self._write(self._store, rows, context)
        return rows

    def _write(self, store: Store, rows: Rows, context: Context | None) -> None:
        left = store.missing(self.table, rows, context) if context else rows
        if self.key:
            left = list({self._key_of(row): row for row in left}.values())
        if left:
            values = [[row.get(name) for name in self._columns] for row in left]
            store.run_all(_inserted(self.table, self._columns, self.key, store.mark), values)

    def close(self) -> None:
        """Close the connection."""
        if self._store is not None:
            self._store.close()

    def _key_of(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        missing = [name for name in self.key if row.get(name) is None]
        if missing:
            there = ", ".join(row)
            raise InvalidInputError(
                f"the table {self.table!r} needs the key {missing[0]!r}, but an event has: {there}"
            )
        return tuple(row[name] for name in self.key)


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
    primary = f", PRIMARY KEY ({keys})" if key else ""
    return f'CREATE TABLE IF NOT EXISTS "{table}" ({declared}{primary})'


def _inserted(table: str, columns: Sequence[str], key: Sequence[str], mark: str) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join(mark for _ in columns)
    insert = f'INSERT INTO "{table}" ({names}) VALUES ({marks})'
    if not key:
        return insert
    keys = ", ".join(f'"{name}"' for name in key)
    rest = [name for name in columns if name not in key]
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in rest)
    then = f"DO UPDATE SET {changes}" if rest else "DO NOTHING"
    return f"{insert} ON CONFLICT ({keys}) {then}"
