"""Events that operators could not process."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from elastream.engines.spark.transport.base import DeadLetter


def add(db: sqlite3.Connection, letters: Sequence[DeadLetter]) -> None:
    """Keep them, in the caller's transaction."""
    now = time.time()
    db.executemany(
        "INSERT INTO dead_letters (operator, events, error, data, time) VALUES (?, ?, ?, ?, ?)",
        [(letter.operator, letter.events, letter.error, letter.data, now) for letter in letters],
    )


def read(db: sqlite3.Connection) -> list[DeadLetter]:
    """All of them, in the order in which they came."""
    rows = db.execute("SELECT operator, events, error, data FROM dead_letters ORDER BY number")
    return [DeadLetter(*row) for row in rows]
