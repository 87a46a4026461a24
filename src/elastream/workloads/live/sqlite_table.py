"""A table in an SQLite file that several replicas write to."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from elastream.workloads.live.tables import StoreTable

BUSY_SECONDS = 30
"""How long a replica waits for the others: only one can write at a time."""
RETRY_SECONDS = 0.01


class SqliteTable:
    """An open connection to one table."""

    def __init__(self, path: Path, table: StoreTable) -> None:
        self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        # With a write-ahead log readers wait for nobody, and a commit need not wait for the disk.
        self._use_write_ahead_log()
        self._connection.execute("PRAGMA synchronous = NORMAL")
        columns = ", ".join(f'"{name}" {kind}' for name, kind in table.columns.items())
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {table.name} ({columns}, PRIMARY KEY (id))"
        )
        places = ", ".join("?" for _ in table.columns)
        self._insert = f"INSERT INTO {table.name} VALUES ({places}) ON CONFLICT (id) DO NOTHING"

    def insert(self, columns: Sequence[list[Any]]) -> None:
        """Add the rows whose `id` is new, in one transaction."""
        # Asking for the right to write at once: a transaction that only finds out later that it
        # needs it fails without waiting.
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(self._insert, zip(*columns, strict=True))
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _use_write_ahead_log(self) -> None:
        """Switch the file over; unlike all other statements, this one does not wait by itself."""
        patience = monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > patience:
                    raise
                sleep(RETRY_SECONDS)
