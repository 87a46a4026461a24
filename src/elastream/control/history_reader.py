"""Reading a history, also while a run writes it, and without changing anything.

A history is written through SQLite's log (WAL), two files beside it: `-wal` has the newest cycles,
and `-shm` says where. They are there while a run writes, or after one was killed. SQLite would make
them for a reader, too, and leave them behind: that cannot be on a read-only medium, and what
another user leaves there keeps a run from using its folder.

| what is there | how it is read |
| --- | --- |
| both | through them: nothing is made, and nobody waits |
| neither, or an empty log | the file as it is: SQLite is told that it does not change |
| the log alone, as a copy may have it | a private copy of the file and its log |
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastream.control.history import APPLICATION_ID
from elastream.errors import InvalidInputError

_ALL = 2**62


class HistoryReader:
    """What was recorded; see `elastream.control.history` for the tables.

    Args:
        path: The file, which must exist.
    """

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise InvalidInputError(f"{path} is a folder: name the history in it, history.db")
        if not path.is_file():
            raise InvalidInputError(f"{path}: there is no such file")
        with ExitStack() as undo:
            try:
                self._db = _opened(path, undo)
                (owner,) = self._db.execute("PRAGMA application_id").fetchone()
                names = self._db.execute("SELECT name FROM sqlite_master").fetchall()
            except (OSError, sqlite3.Error) as error:
                raise InvalidInputError(f"{path}: cannot be read as a history: {error}") from None
            if owner != APPLICATION_ID and names:
                raise InvalidInputError(f"{path} is a database of another program, not a history")
            self._tables = {name for (name,) in names}
            self._close = undo.pop_all()

    def steering(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """What people changed from that cycle on, oldest first."""
        return self._rows(
            "steering", "SELECT * FROM steering WHERE cycle >= ? ORDER BY number", after
        )

    def cycles(self, last: int = _ALL) -> Iterator[dict[str, Any]]:
        """The newest `last` cycles, oldest first, each with its changes."""
        newest = "(SELECT max(cycle) FROM cycles)"
        for row in self._rows(
            "cycles", f"SELECT * FROM cycles WHERE cycle > {newest} - ? ORDER BY cycle", last
        ):
            changes = self._rows("changes", "SELECT * FROM changes WHERE cycle = ?", row["cycle"])
            yield {**row, "changes": [_readable(change) for change in changes]}

    def operators(self) -> Iterator[dict[str, Any]]:
        """Every operator in every cycle, oldest first."""
        return self._rows(
            "operators",
            "SELECT cycles.time, operators.* FROM operators JOIN cycles USING (cycle) "
            "ORDER BY cycle, operator",
        )

    def last_replicas(self) -> dict[str, int]:
        """The replicas of every operator as planned last, or as they were if nothing was."""
        rows = self._rows(
            "operators",
            "SELECT operator, coalesce(planned, active) AS replicas FROM operators "
            "WHERE cycle = (SELECT max(cycle) FROM operators)",
        )
        return {row["operator"]: row["replicas"] for row in rows}

    def samples(self) -> NDArray[np.float64]:
        """The whole recorded input, one value per sampling window: what models train on."""
        if "samples" not in self._tables:
            return np.empty(0)
        rows = self._db.execute("SELECT events FROM samples ORDER BY cycle, position")
        return np.array([events for (events,) in rows], dtype=np.float64)

    def close(self) -> None:
        """Close the file."""
        self._close.close()

    def _rows(self, table: str, query: str, *values: Any) -> Iterator[dict[str, Any]]:
        """Nothing if the table is not there: in an early version, or before the first cycle."""
        if table not in self._tables:
            return iter(())
        cursor = self._db.execute(query, values)
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)


def last_replicas(path: Path) -> dict[str, int]:
    """What `HistoryReader.last_replicas` says, or nothing if there is no history yet."""
    if not path.is_file():
        return {}
    with closing(HistoryReader(path)) as history:
        return history.last_replicas()


def _opened(path: Path, undo: ExitStack) -> sqlite3.Connection:
    """A connection that changes nothing; see the table above."""
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    how = "mode=ro"
    if not log.exists() or (not index.exists() and not log.stat().st_size):
        how = "immutable=1"
    elif not index.exists():
        folder = Path(undo.enter_context(TemporaryDirectory(prefix="elastream-")))
        copyfile(log, folder / log.name)
        path = Path(copyfile(path, folder / path.name))
    address = f"{path.absolute().as_uri()}?{how}"
    return undo.enter_context(closing(sqlite3.connect(address, uri=True, isolation_level=None)))


def _readable(change: dict[str, Any]) -> dict[str, Any]:
    return {**change, "facts": json.loads(change["facts"])}
