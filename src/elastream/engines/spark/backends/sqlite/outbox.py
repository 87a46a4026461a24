"""The outbox in a state folder: a table with numbers that no batch gets twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from elastream.engines.spark.backends.outbox import Outbox, output_of
from elastream.engines.spark.backends.sqlite.database import writing


class SqliteOutbox(Outbox):
    """One end of an operator's outbox, for one process or thread."""

    def __init__(self, db: sqlite3.Connection, operator: str) -> None:
        self._operator = output_of(operator)
        self._db = db

    def newest(self) -> int:
        """Writers take turns, so numbers become visible in their order."""
        (number,) = self._db.execute(
            "SELECT max(number) FROM output_batches WHERE operator = ?", (self._operator,)
        ).fetchone()
        if number is None:
            return self.consumed()
        with writing(self._db):
            self._db.execute(
                "INSERT INTO outputs VALUES (?, 0, ?) "
                "ON CONFLICT DO UPDATE SET offered = excluded.offered",
                (self._operator, number),
            )
        return int(number)

    def read(self, after: int, upto: int) -> Iterator[bytes]:
        """Row by row."""
        rows = self._db.execute(
            "SELECT data FROM output_batches "
            "WHERE operator = ? AND number > ? AND number <= ? ORDER BY number",
            (self._operator, after, upto),
        )
        return (data for (data,) in rows)

    def consume(self, upto: int) -> None:
        """Remove the rows and remember it, unless that has happened."""
        if upto <= self.consumed():
            return
        with writing(self._db):
            removed = self._db.execute(
                "DELETE FROM output_batches WHERE operator = ? AND number <= ? RETURNING events",
                (self._operator, upto),
            ).fetchall()
            self._db.execute(
                "UPDATE lanes SET consumed = consumed + ? WHERE operator = ? AND lane = 0",
                (sum(events for (events,) in removed), self._operator),
            )
            self._db.execute(
                "INSERT INTO outputs VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
                "consumed = max(consumed, excluded.consumed)",
                (self._operator, upto, upto),
            )

    def consumed(self) -> int:
        """Look it up."""
        row = self._db.execute(
            "SELECT consumed FROM outputs WHERE operator = ?", (self._operator,)
        ).fetchone()
        return row[0] if row else 0

    def close(self) -> None:
        """Close the file."""
        self._db.close()
