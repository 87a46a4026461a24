"""Word that replicas leave for their producers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from elastream.core.groupings.base import Feedback
from elastream.engines.spark.backends.base import ReplicaName
from elastream.engines.spark.backends.sqlite.packing import packed, unpacked


def leave(
    db: sqlite3.Connection,
    producers: Iterable[ReplicaName],
    replica: ReplicaName,
    feedback: Feedback,
) -> None:
    """Write it down for each of them, in the caller's transaction."""
    kind, content = type(feedback).__name__, packed(feedback)
    db.executemany(
        "INSERT OR REPLACE INTO words VALUES (?, ?, ?, ?, ?, ?)",
        [(*producer, *replica, kind, content) for producer in producers],
    )


def any_for(db: sqlite3.Connection, producer: ReplicaName) -> bool:
    """Whether there is word for it."""
    found = db.execute(
        "SELECT 1 FROM words WHERE producer = ? AND number = ? LIMIT 1", producer
    ).fetchone()
    return found is not None


def collect(db: sqlite3.Connection, producer: ReplicaName) -> list[tuple[str, Feedback]]:
    """Take all that there is for it, in the caller's transaction."""
    rows = db.execute(
        "DELETE FROM words WHERE producer = ? AND number = ? RETURNING operator, content", producer
    ).fetchall()
    return [(operator, unpacked(content)) for operator, content in rows]
