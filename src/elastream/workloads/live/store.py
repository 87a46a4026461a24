"""The end of every application: events into a database, each of them once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from elastream.errors import InvalidInputError, MissingExtraError
from elastream.workloads.applications import Step
from elastream.workloads.live.sqlite_table import SqliteTable
from elastream.workloads.live.tables import StoreTable


class OpenTable(Protocol):
    """A table to which one replica is connected."""

    def insert(self, columns: Sequence[list[Any]]) -> None:
        """Add the rows whose `id` the table does not have yet: all of them, or none."""

    def close(self) -> None:
        """Let go of the connection."""


def store_into(target: str | Path, table: StoreTable) -> Step:
    """Store batches in a table of an SQLite file or, by `postgresql://...`, of a PostgreSQL server.

    Every replica opens its own connection and makes the table if there is none.
    """
    connect = _connect_to(target)

    def open_table() -> OpenTable:
        return connect(table)

    def store(batch: pa.Table, opened: OpenTable) -> pa.Table:
        if len(batch):
            opened.insert([batch[name].to_pylist() for name in table.columns])
        return batch

    return Step(store, setup=open_table, teardown=_close)


def _close(opened: OpenTable) -> None:
    opened.close()


def _connect_to(target: str | Path) -> Callable[[StoreTable], OpenTable]:
    scheme, is_url, _ = str(target).partition("://")
    if scheme in ("postgresql", "postgres") and is_url:
        try:
            from elastream.workloads.live.postgresql_table import PostgresqlTable
        except ModuleNotFoundError:
            raise MissingExtraError("storing into PostgreSQL", "postgresql") from None
        return partial(PostgresqlTable, str(target))
    if is_url:
        raise InvalidInputError(
            f"the store {scheme + '://...'!r}: give the path of an SQLite file, or postgresql://..."
        )
    # Replicas run in other processes, which may have another working folder.
    path = Path(target).resolve()
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(
            f"the store {path}: give the path of a file in a folder that exists"
        )
    return partial(SqliteTable, path)
