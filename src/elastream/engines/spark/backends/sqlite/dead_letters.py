"""Events that operators could not process; who changes them does so in a transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence

from elastream.engines.spark.backends.base import DeadLetter, ReplicaName


def add(db: sqlite3.Connection, letters: Sequence[DeadLetter], queue: int) -> None:
    """Keep them, with the number of the queue that they came from."""
    now = time.time()
    db.executemany(
        "INSERT INTO dead_letters (operator, replica, events, error, data, time) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [(one.operator, queue, one.events, one.error, one.data, now) for one in letters],
    )


def read(db: sqlite3.Connection, operator: str | None) -> Iterator[DeadLetter]:
    """All of them, or an operator's, newest first."""
    rows = db.execute(
        "SELECT operator, events, error, data, time, number FROM dead_letters "
        "WHERE ? IS NULL OR operator = ? ORDER BY number DESC",
        (operator, operator),
    )
    return (DeadLetter(*row) for row in rows)


def put_back(db: sqlite3.Connection, letter: DeadLetter) -> ReplicaName | None:
    """Move it to the end of its queue, whose name is returned; None if it is not there."""
    row = db.execute(
        "INSERT INTO batches (operator, replica, events, born, data) "
        "SELECT operator, replica, events, ?, data FROM dead_letters WHERE number = ? "
        "RETURNING operator, replica",
        (time.time(), letter.number),
    ).fetchone()
    db.execute("DELETE FROM dead_letters WHERE number = ?", (letter.number,))
    return tuple(row) if row else None
