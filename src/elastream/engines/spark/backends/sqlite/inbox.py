"""The inbox in a state folder: parcels in a table of their own until they are admitted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from elastream.engines.spark.backends.base import Counts
from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED, Inbox
from elastream.engines.spark.backends.sqlite.database import opened
from elastream.engines.spark.backends.sqlite.lanes import Queues
from elastream.engines.spark.backends.sqlite.ledger import Tally
from elastream.engines.spark.backends.sqlite.wakeup import Ringer, bell_name
from elastream.errors import EngineError
from elastream.transactions import transaction


class SqliteInbox(Inbox):
    """One end of a source's inbox, for one process or thread."""

    def __init__(self, folder: Path, source: str) -> None:
        self._folder = folder
        self._source = source
        # A query does not read again what it has seen admitted, whatever the machine forgets.
        self._db = opened(folder, durable=True)

    def stage(self, parcel: str, events: int, data: bytes) -> None:
        """Add a row."""
        with transaction(self._db):
            self._db.execute(
                "INSERT INTO staged (source, parcel, events, data) VALUES (?, ?, ?, ?)",
                (self._source, parcel, events, data),
            )

    def admit(self, number: int, parcels: Mapping[str, int]) -> bool:
        """Move the rows into the source's queue; what else was staged failed, and goes."""
        with transaction(self._db):
            if number <= self.admitted():
                # Others may be staging for the next batch: only what this one brought goes.
                self._db.executemany(
                    "DELETE FROM staged WHERE source = ? AND parcel = ?",
                    [(self._source, parcel) for parcel in parcels],
                )
                return False
            arrived = sum(self._move(parcel, events) for parcel, events in parcels.items())
            Tally(self._db).add((self._source, 0), Counts(processed=arrived))
            self._db.execute("INSERT OR REPLACE INTO feeds VALUES (?, ?)", (self._source, number))
            self._discard()
        ringer = Ringer(self._folder)
        ringer.ring(bell_name(self._source, 0))
        ringer.close()
        return True

    def admitted(self) -> int:
        """Look it up."""
        row = self._db.execute(
            "SELECT admitted FROM feeds WHERE source = ?", (self._source,)
        ).fetchone()
        return row[0] if row else NOTHING_ADMITTED

    def discard(self) -> None:
        """Remove all rows."""
        with transaction(self._db):
            self._discard()

    def waiting(self) -> int:
        """The length of the source's queue."""
        return Queues(self._db).waiting(self._source)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _move(self, parcel: str, events: int) -> int:
        (found,) = self._db.execute(
            "SELECT coalesce(sum(events), 0) FROM staged WHERE source = ? AND parcel = ?",
            (self._source, parcel),
        ).fetchone()
        if found != events:
            raise EngineError(
                f"source {self._source!r}: {events} events were staged, and {found} are there"
            )
        self._db.execute(
            "INSERT INTO batches (operator, replica, events, born, data) "
            "SELECT source, 0, events, ?, data FROM staged WHERE source = ? AND parcel = ? "
            "ORDER BY number",
            (time.time(), self._source, parcel),
        )
        return events

    def _discard(self) -> None:
        self._db.execute("DELETE FROM staged WHERE source = ?", (self._source,))
