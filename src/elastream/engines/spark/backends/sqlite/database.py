"""The file of a state folder."""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from pathlib import Path

from elastream.errors import InvalidInputError

FILE = "elastream.db"
_BUSY_SECONDS = 30.0
VERSION = 1
"""Of the tables: it grows whenever they change."""


def opened(folder: Path, durable: bool = False) -> sqlite3.Connection:
    """A connection to the file, which is made if need be.

    Args:
        folder: The state folder.
        durable: A commit forces it and all before it to the disk. For what others rely on who
            remember it by themselves.
    """
    db = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(
            folder / FILE, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        # Consumed batches leave free pages, which new ones use again: the file stays as large as
        # its fullest moment. Most pages change again and again, so a long log saves writing them;
        # it is cut back to this size whenever it was larger.
        db.execute("PRAGMA wal_autocheckpoint = 8000")
        db.execute("PRAGMA journal_size_limit = 67108864")
        _prepare(db)
    except (OSError, sqlite3.Error) as error:
        if db:
            db.close()
        raise InvalidInputError(f"the state folder {folder} cannot be used: {error}") from None
    return db


def _prepare(db: sqlite3.Connection) -> None:
    """Make the tables, all at once: others may open the file at the same time."""
    version, tables = db.execute(
        "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
    ).fetchone()
    if version == VERSION:
        return
    if tables:
        raise sqlite3.DatabaseError("another version of elastream has made it; name another folder")
    schema = files(__package__).joinpath("schema.sql").read_text()
    db.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version = {VERSION}; COMMIT;")
