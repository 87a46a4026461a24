"""Who acts for which replica, and which could not start."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from elastream.engines.spark.backends.base import ReplicaName


class Membership:
    """The members of a pipeline; who changes them does so in a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def generation(self, name: ReplicaName) -> int:
        """That of who acts for the replica; 0 if nobody does."""
        row = self._db.execute(
            "SELECT generation FROM members WHERE operator = ? AND replica = ?", name
        ).fetchone()
        return row[0] if row else 0

    def add(self, name: ReplicaName, owner: str, generation: int) -> None:
        """The owner acts for the replica, which has started."""
        self._db.execute("DELETE FROM failures WHERE operator = ? AND replica = ?", name)
        self._db.execute("INSERT INTO members VALUES (?, ?, ?, ?)", (*name, owner, generation))

    def remove(self, name: ReplicaName) -> str | None:
        """Nobody acts for the replica; returns who did."""
        row = self._db.execute(
            "DELETE FROM members WHERE operator = ? AND replica = ? RETURNING owner", name
        ).fetchone()
        return row[0] if row else None

    def owned(self, name: ReplicaName, owner: str) -> bool:
        """Whether it is this one who acts for the replica."""
        row = self._db.execute(
            "SELECT 1 FROM members WHERE operator = ? AND replica = ? AND owner = ?", (*name, owner)
        ).fetchone()
        return row is not None

    def owners(self) -> Mapping[ReplicaName, str]:
        """Everybody."""
        rows = self._db.execute("SELECT operator, replica, owner FROM members")
        return {(operator, replica): owner for operator, replica, owner in rows}

    def report_failure(self, name: ReplicaName, error: str) -> None:
        """Write the newest error down."""
        self._db.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (*name, error))

    def forget_failures(self) -> None:
        """Remove all errors."""
        self._db.execute("DELETE FROM failures")

    def failures(self) -> Mapping[ReplicaName, str]:
        """The newest errors."""
        rows = self._db.execute("SELECT operator, replica, error FROM failures")
        return {(operator, replica): error for operator, replica, error in rows}
