"""The file of a state folder, and transactions on it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from elastream.engines.spark.backends.private_folder import make_private
from elastream.engines.spark.backends.sqlite import busy, versions
from elastream.errors import BackendUnavailableError, InvalidInputError

FILE = "elastream.db"
LOCK = "driver.lock"
TURN = "writer.lock"
_OURS = {busy.FILE, FILE, f"{FILE}-wal", f"{FILE}-shm", LOCK, TURN}
_NAP_SECONDS, _NAPS = 0.0002, 10
"""How long a member naps while another has its turn, and how often at most."""
_BUSY_SECONDS = 30.0
_PASSING = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_PROTOCOL,  # Others were quicker, dozens of times: the machine is overloaded.
    sqlite3.SQLITE_CANTOPEN,
}
"""What goes wrong with a disk that is full or busy, and right again when it is not."""
_REFUSED = sqlite3.OperationalError, BackendUnavailableError


class _Database(sqlite3.Connection):
    """Tells those who try again what passes, also when they read; it takes less than 0.1 us."""

    def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Raises a `BackendUnavailableError` for what passes."""
        try:
            return _execute(self, statement, parameters)
        except sqlite3.OperationalError as error:
            if _passes(error):
                raise _unavailable(error) from error
            raise


_execute = sqlite3.Connection.execute


def opened(folder: Path, durable: bool = False) -> sqlite3.Connection:
    """A connection to the file, which is created if need be.

    Args:
        folder: The state folder.
        durable: A commit forces it and all before it to the disk. For what others rely on who
            remember it by themselves.
    """
    db = None
    try:
        make_folder(folder)
        db = sqlite3.connect(
            folder / FILE,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=_Database,
        )
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        # Consumed batches leave free pages, which new ones use again: the file stays as large as
        # its fullest moment. A driver keeps the log short (`checkpointer`); who commits does so
        # only when it has grown to four times that, and it is cut back whenever it was larger.
        db.execute("PRAGMA wal_autocheckpoint = 128000")
        # Some builds of SQLite fill what is deleted with zeros: every batch would be written twice.
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("PRAGMA journal_size_limit = 67108864")
        _prepare(db)
    except (OSError, sqlite3.Error, BackendUnavailableError) as error:
        if db:
            db.close()
        raise _unusable(folder, error) from None
    return db


def _unusable(folder: Path, error: Exception) -> BackendUnavailableError | InvalidInputError:
    if isinstance(error, BackendUnavailableError) or _passes(error):
        return BackendUnavailableError(f"the state folder {folder}: {error}")
    return InvalidInputError(f"the state folder {folder} cannot be used: {error}")


def make_folder(folder: Path) -> None:
    """Make it, if there is none; in any case it is private, and so are the files of a state."""
    make_private(folder, _OURS)


class Turn:
    """Whose turn it is to write, among those who do so all the time.

    SQLite lets whoever comes second sleep for 1 ms, then 2, 5, 10, and so on, and most commits take
    a fraction of that: under a flood, members would spend their time asleep. So they first wait
    here, with shorter naps, and only then, if somebody takes very long, as SQLite does.
    """

    def __init__(self, folder: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(folder / TURN, flags, 0o600)
        except OSError as error:
            raise _unusable(folder, error) from None

    def wait(self) -> None:
        """Wait for it, but not for long."""
        for _ in range(_NAPS):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_NAP_SECONDS)
            else:
                return

    def end(self) -> None:
        """Let others write."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class writing:  # noqa: N801 - reads like a verb: with writing(db)
    """Commit what the block did, or roll all of it back if it raises.

    Args:
        db: The connection.
        turn: To be waited for.

    Raises:
        BackendUnavailableError: The disk is full, or the like. Nothing has happened.
    """

    def __init__(self, db: sqlite3.Connection, turn: Turn | None = None) -> None:
        self._db = db
        self._turn = turn

    def __enter__(self) -> None:
        if self._turn:
            self._turn.wait()
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except _REFUSED as error:
            self._fail(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self._db.execute("COMMIT")
            except _REFUSED as error:
                self._fail(error)
            if self._turn:
                self._turn.end()
            return
        self._roll_back()
        if error is not None and _passes(error):
            raise _unavailable(error) from error

    def _fail(self, error: Exception) -> NoReturn:
        self._roll_back()
        if _passes(error):
            raise _unavailable(error) from error
        raise error

    def _roll_back(self) -> None:
        with suppress(*_REFUSED):  # SQLite may have done so by itself.
            self._db.execute("ROLLBACK")
        if self._turn:
            self._turn.end()


class reading:  # noqa: N801 - reads like a verb
    """Let everything that the block reads be of one moment."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN DEFERRED")

    def __exit__(self, *_: object) -> None:
        if self._db.in_transaction:  # Else SQLite has ended it by itself, with an error.
            self._db.execute("COMMIT")


def _unavailable(error: BaseException) -> BackendUnavailableError:
    return BackendUnavailableError(f"the state cannot be read or written now: {error}")


def _passes(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno == 28  # No space left on device.
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _PASSING


def _prepare(db: sqlite3.Connection) -> None:
    """Make the tables, or bring them up to date, all at once: others may open the file, too."""
    version, tables = _found(db)
    if version == versions.NEWEST:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        version, tables = _found(db)
        schema = files(__package__).joinpath("schema.sql").read_text()
        if tables == 0:
            _run_script(db, schema)
        elif version != versions.NEWEST:
            versions.bring_up_to_date(db, version, lambda: _run_script(db, schema))
        db.execute(f"PRAGMA user_version = {versions.NEWEST}")
        db.execute("COMMIT")
    except BaseException:
        with suppress(*_REFUSED):
            db.execute("ROLLBACK")
        raise


def _found(db: sqlite3.Connection) -> tuple[int, int]:
    version, tables = db.execute(
        "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
    ).fetchone()
    return version, tables


def _run_script(db: sqlite3.Connection, script: str) -> None:
    """Run statements one by one: `executescript` would end the transaction."""
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    for statement in "\n".join(lines).split(";"):
        if statement.strip():
            db.execute(statement)
