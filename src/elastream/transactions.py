"""All or nothing, on an SQLite connection that begins nothing by itself."""

from __future__ import annotations

import sqlite3
from types import TracebackType


class transaction:  # noqa: N801 - reads like a verb: with transaction(db)
    """Commit what the block did, or roll all of it back if it raises or cannot be committed."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        finally:
            # On a full disk, SQLite has rolled back by itself: there is nothing left to undo.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
