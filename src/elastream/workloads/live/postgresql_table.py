"""A table of a PostgreSQL server that several replicas write to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import psycopg

from elastream.errors import InvalidInputError
from elastream.workloads.live.tables import StoreTable


class PostgresqlTable:
    """A connection to one table, made again after the server has cut it."""

    def __init__(self, url: str, table: StoreTable) -> None:
        self._url = url
        try:
            self._connection = psycopg.connect(url, autocommit=True)
        except psycopg.Error as error:
            raise InvalidInputError(
                f"the PostgreSQL store cannot be opened ({error}): check its URL and the server"
            ) from error
        columns = ", ".join(f'"{name}" {kind}' for name, kind in table.columns.items())
        with self._connection.transaction():
            # Two replicas that make the same table at once would disturb each other.
            self._connection.execute(
                "SELECT pg_advisory_xact_lock(%s)", (crc32(table.name.encode()),)
            )
            self._execute(f"CREATE TABLE IF NOT EXISTS {table.name} ({columns}, PRIMARY KEY (id))")
        arrays = ", ".join(f"%s::{kind}[]" for kind in table.columns.values())
        # In the order of ids, so that replicas with the same events cannot lock each other out.
        self._insert = (
            f"INSERT INTO {table.name} SELECT * FROM unnest({arrays}) ORDER BY 1 "
            "ON CONFLICT DO NOTHING"
        )

    def insert(self, columns: Sequence[list[Any]]) -> None:
        """Add the rows whose `id` is new, in one statement."""
        if self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True)
        self._execute(self._insert, columns)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _execute(self, query: str, parameters: Sequence[list[Any]] | None = None) -> None:
        # As bytes, since psycopg takes texts for safe only when they are literals; what makes these
        # up besides are a `StoreTable`'s names.
        self._connection.execute(query.encode(), parameters)
