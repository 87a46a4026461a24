"""Events that operators could not process."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence

from elastream.engines.spark.backends.dead_letters import DeadLetter, DeadLetters
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite.database import writing
from elastream.engines.spark.backends.sqlite.layout import noted_layout
from elastream.engines.spark.backends.sqlite.storage import EVERYBODY, Storage
from elastream.engines.spark.backends.sqlite.wakeup import Waker
from elastream.engines.spark.births import Births


class SqliteDeadLetters(DeadLetters):
    """A table of them."""

    def __init__(self, db: sqlite3.Connection, storage: Storage, waker: Waker) -> None:
        self._db = db
        self._storage = storage
        self._waker = waker

    def add(self, letters: Sequence[DeadLetter]) -> None:
        """Keep them, in the caller's transaction."""
        now = time.time()
        self._db.executemany(
            "INSERT INTO dead_letters (operator, lane, events, error, data, time) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [
                (each.operator, each.lane, each.events, each.error, each.data, now)
                for each in letters
            ],
        )

    def read(self, operator: str | None = None) -> Iterator[DeadLetter]:
        """Row by row."""
        rows = self._db.execute(
            "SELECT operator, events, error, data, lane, time, number FROM dead_letters "
            "WHERE ? IS NULL OR operator = ? ORDER BY number DESC",
            (operator, operator),
        )
        return (DeadLetter(*row) for row in rows)

    def errors(self, after: int) -> tuple[int, Mapping[tuple[str, str], int]]:
        """Count the rows with higher numbers."""
        rows = self._db.execute(
            "SELECT operator, error, sum(events), max(number) FROM dead_letters "
            "WHERE number > ? GROUP BY operator, error",
            (after,),
        ).fetchall()
        newest = max((number for *_, number in rows), default=after)
        return newest, {(operator, error): events for operator, error, events, _ in rows}

    def retry(self, letters: Sequence[DeadLetter]) -> int:
        """Move those that are still there, all in one transaction."""
        with writing(self._db):
            there = [letter for letter in letters if self._remove(letter)]
            now, layout = time.time(), noted_layout(self._db)
            owners = self._storage.put(
                [
                    Parcel(
                        letter.operator,
                        layout[letter.operator].lane_again(letter)
                        if letter.operator in layout
                        else letter.lane,
                        letter.events,
                        Births.evenly(letter.events, now),
                        letter.data,
                    )
                    for letter in there
                ]
            )
        for operator, owner in owners:
            if owner is None or owner == EVERYBODY:
                self._waker.wake_all(operator)
            else:
                self._waker.wake((operator, owner))
        return len(there)

    def _remove(self, letter: DeadLetter) -> bool:
        removed = self._db.execute("DELETE FROM dead_letters WHERE number = ?", (letter.number,))
        return removed.rowcount == 1
