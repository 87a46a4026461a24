"""The inbox in a state folder: staged events are in a separate table until admitted."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED, Inbox
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite.database import writing
from elastream.engines.spark.backends.sqlite.ledger import SqliteLedger
from elastream.engines.spark.backends.sqlite.storage import Storage
from elastream.engines.spark.backends.sqlite.waiting import WaitingEvents
from elastream.engines.spark.backends.sqlite.wakeup import Waker
from elastream.engines.spark.births import Births
from elastream.errors import EngineError


class SqliteInbox(Inbox):
    """One end of a source's inbox, for one process or thread."""

    def __init__(self, folder: Path, db: sqlite3.Connection, source: str) -> None:
        self._folder = folder
        self._source = source
        self._db = db
        self._storage = Storage(db)

    def stage(self, name: str, events: int, data: bytes) -> None:
        """Add a row."""
        with writing(self._db):
            self._db.execute(
                "INSERT INTO staged (source, name, events, data) VALUES (?, ?, ?, ?)",
                (self._source, name, events, data),
            )

    def admit(self, number: int, staged: Mapping[str, int]) -> bool:
        """Move the rows into the source's lane; what else was staged failed, and goes."""
        with writing(self._db):
            if number <= self.admitted():
                # Others may be staging for the next batch: only what this one brought goes.
                self._db.executemany(
                    "DELETE FROM staged WHERE source = ? AND name = ?",
                    [(self._source, name) for name in staged],
                )
                return False
            arrived = sum(self._move(name, events) for name, events in staged.items())
            SqliteLedger(self._db).add((self._source, 0), Counts(processed=arrived))
            self._db.execute("INSERT OR REPLACE INTO feeds VALUES (?, ?)", (self._source, number))
            self._discard()
        with closing(Waker(self._folder)) as waker:
            waker.wake((self._source, 0))
        return True

    def admitted(self) -> int:
        """Look it up."""
        row = self._db.execute(
            "SELECT admitted FROM feeds WHERE source = ?", (self._source,)
        ).fetchone()
        return row[0] if row else NOTHING_ADMITTED

    def discard(self) -> None:
        """Remove all rows."""
        with writing(self._db):
            self._discard()

    def waiting(self) -> int:
        """The length of the source's lane."""
        return sum(WaitingEvents(self._db).lengths(self._source).values())

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _move(self, name: str, events: int) -> int:
        rows = self._db.execute(
            "SELECT events, data FROM staged WHERE source = ? AND name = ? ORDER BY number",
            (self._source, name),
        ).fetchall()
        found = sum(count for count, _ in rows)
        if found != events:
            raise EngineError(
                f"source {self._source!r}: {events} events were staged, and {found} are there"
            )
        now = time.time()
        self._storage.put(
            [
                Parcel(self._source, 0, count, Births.evenly(count, now), data)
                for count, data in rows
            ]
        )
        return events

    def _discard(self) -> None:
        self._db.execute("DELETE FROM staged WHERE source = ?", (self._source,))
