"""All or nothing, on an SQLite connection that begins nothing by itself."""

from __future__ import annotations

import sqlite3
from types import TracebackType


class transaction:  # noqa: N801 - reads like a verb: with transaction(db)
    """Commit what the block did, or roll all of it back if it raises."""

    def __init__(self, db: sqlite3.Connection, kind: str = "IMMEDIATE") -> None:
        self._db = db
        self._begin = f"BEGIN {kind}"

    def __enter__(self) -> None:
        self._db.execute(self._begin)

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._db.execute("ROLLBACK" if kind else "COMMIT")
