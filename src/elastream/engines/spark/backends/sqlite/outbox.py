"""The outbox in a state folder: a queue like others, which nobody takes from but a query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from elastream.engines.spark.backends.outbox import Outbox, output_queue
from elastream.engines.spark.backends.sqlite.database import opened
from elastream.transactions import transaction

_MINE = "operator = ? AND replica = 0 AND taken_by IS NULL"


class SqliteOutbox(Outbox):
    """One end of an operator's outbox, for one process or thread."""

    def __init__(self, folder: Path, operator: str) -> None:
        self._queue = output_queue(operator)
        # Tickets that a query has seen must not be given out again, whatever the machine forgets.
        self._db = opened(folder, durable=True)

    def newest(self) -> int:
        """Writers take turns, so tickets become visible in their order."""
        (ticket,) = self._db.execute(
            f"SELECT max(ticket) FROM batches WHERE {_MINE}", (self._queue,)
        ).fetchone()
        if ticket is None:
            return self.consumed()
        with transaction(self._db):
            self._db.execute(
                "INSERT INTO outputs VALUES (?, 0, ?) "
                "ON CONFLICT DO UPDATE SET offered = excluded.offered",
                (self._queue, ticket),
            )
        return int(ticket)

    def read(self, after: int, upto: int) -> Iterator[bytes]:
        """Row by row."""
        rows = self._db.execute(
            f"SELECT data FROM batches WHERE {_MINE} AND ticket > ? AND ticket <= ? "
            "ORDER BY ticket",
            (self._queue, after, upto),
        )
        return (data for (data,) in rows)

    def consume(self, upto: int) -> None:
        """Remove the rows and remember it, unless that has happened."""
        if upto <= self.consumed():
            return
        with transaction(self._db):
            self._db.execute(
                f"DELETE FROM batches WHERE {_MINE} AND ticket <= ?", (self._queue, upto)
            )
            self._db.execute(
                "INSERT INTO outputs VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
                "consumed = max(consumed, excluded.consumed)",
                (self._queue, upto, upto),
            )

    def consumed(self) -> int:
        """Look it up."""
        row = self._db.execute(
            "SELECT consumed FROM outputs WHERE queue = ?", (self._queue,)
        ).fetchone()
        return row[0] if row else 0

    def close(self) -> None:
        """Close the file."""
        self._db.close()
