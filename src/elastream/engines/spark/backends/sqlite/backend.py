"""The backend in a state folder."""

from __future__ import annotations

import fcntl
import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from elastream.engines.spark.backends.base import Backend, Connection, Ownership
from elastream.engines.spark.backends.inbox import Inbox
from elastream.engines.spark.backends.kept import Kept
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.outbox import Outbox
from elastream.engines.spark.backends.sqlite import savepoint
from elastream.engines.spark.backends.sqlite.board import SqliteBoard
from elastream.engines.spark.backends.sqlite.checkpointer import Checkpointer
from elastream.engines.spark.backends.sqlite.database import (
    FILE,
    LOCK,
    Turn,
    make_folder,
    opened,
    writing,
)
from elastream.engines.spark.backends.sqlite.dead_letters import SqliteDeadLetters
from elastream.engines.spark.backends.sqlite.inbox import SqliteInbox
from elastream.engines.spark.backends.sqlite.lanes import SqliteLanes
from elastream.engines.spark.backends.sqlite.layout import lay_out, note_chains, noted_layout
from elastream.engines.spark.backends.sqlite.ledger import SqliteLedger
from elastream.engines.spark.backends.sqlite.outbox import SqliteOutbox
from elastream.engines.spark.backends.sqlite.storage import Storage
from elastream.engines.spark.backends.sqlite.wakeup import Waker, remove_sockets
from elastream.errors import InvalidInputError


@dataclass(frozen=True)
class SqliteBackend(Backend):
    """One SQLite file in a folder that is private to its user."""

    folder: Path

    def __post_init__(self) -> None:
        # It travels to processes that may work in another folder.
        object.__setattr__(self, "folder", self.folder.absolute())

    @property
    def url(self) -> str:
        """The folder, with what it is."""
        return f"sqlite:{self.folder}"

    @property
    def checkpoints(self) -> str:
        """The folder itself."""
        return str(self.folder)

    @property
    def exists(self) -> bool:
        """Whether a run has used the folder."""
        return (self.folder / FILE).is_file()

    @contextmanager
    def own(self) -> Iterator[Ownership]:
        """Lock a file; the lock goes with this process, however it ends."""
        try:
            make_folder(self.folder)
            descriptor = os.open(
                self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
        except OSError as error:
            raise InvalidInputError(
                f"the state folder {self.folder} cannot be used: {error}"
            ) from None
        try:
            self._lock(descriptor)
            with Checkpointer(self.folder):
                yield Ownership()  # Nobody can take a lock away.
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            raise InvalidInputError(
                f"the state folder {self.folder} is in use by {owner or 'another driver'}: "
                "stop it first, or name another folder"
            ) from None
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        who = f"process {os.getpid()} on {socket.gethostname()}, since {started}"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, who.encode(), 0)

    def prepare(self, pipeline: str, operators: Mapping[str, OperatorLanes]) -> None:
        """Write the pipeline down, or compare; then lay out its lanes."""
        with closing(opened(self.folder)) as db:
            with writing(db):
                db.execute("INSERT OR IGNORE INTO meta VALUES ('pipeline', ?)", (pipeline,))
            (owner,) = db.execute("SELECT value FROM meta WHERE name = 'pipeline'").fetchone()
            if owner != pipeline:
                raise InvalidInputError(
                    f"the state folder {self.folder} belongs to another pipeline ({owner}): "
                    "name another folder, or remove it"
                )
            for name, wanted in operators.items():
                lay_out(db, name, wanted)
            with writing(db):
                note_chains(db, operators)

    def layout(self) -> Mapping[str, OperatorLanes]:
        """As it was noted; nothing where there is no file."""
        if not self.exists:
            return {}
        with closing(opened(self.folder)) as db:
            return noted_layout(db)

    def connect(self) -> SqliteConnection:
        """Open the file once more."""
        return SqliteConnection(self.folder)

    def inbox(self, source: str) -> Inbox:
        """A query does not read again what it has seen admitted, whatever the machine forgets."""
        return SqliteInbox(self.folder, opened(self.folder, durable=True), source)

    def outbox(self, operator: str) -> Outbox:
        """Numbers that a query has seen must not be given out again, whatever is forgotten."""
        return SqliteOutbox(opened(self.folder, durable=True), operator)

    def clear(self, operator: str) -> int:
        """Delete the rows; commits of members that have taken some of them are refused."""
        with closing(opened(self.folder)) as db, writing(db):
            return _cleared(db, operator)

    def sweep(self) -> None:
        """Remove all sockets."""
        remove_sockets(self.folder)

    def described(self) -> tuple[str, Mapping[str, OperatorLanes]] | None:
        """Read two tables."""
        if not self.exists:
            return None
        with closing(opened(self.folder)) as db:
            return savepoint.described(db)

    def kept(self) -> Iterator[Kept]:
        """Read all tables, as they are at one moment."""
        with closing(opened(self.folder)) as db:
            yield from savepoint.kept(db)

    def restore(
        self, pipeline: str, operators: Mapping[str, OperatorLanes], kept: Iterable[Kept]
    ) -> None:
        """All in one transaction."""
        with closing(opened(self.folder, durable=True)) as db, writing(db):
            if savepoint.described(db) is not None:
                raise InvalidInputError(
                    f"the state folder {self.folder} is not empty: name another, or remove it"
                )
            savepoint.restore(db, pipeline, operators, kept)

    def check_removable(self) -> NoReturn:
        """It holds more than ours: what a run has stored, its history, checkpoints."""
        raise InvalidInputError(f"the state {self.url} is a folder: remove it yourself")

    def remove(self) -> NoReturn:
        """Leave that to its user."""
        self.check_removable()


class SqliteConnection(Connection):
    """The ports on one connection to the file."""

    def __init__(self, folder: Path) -> None:
        with ExitStack() as undo:
            self._waker = Waker(folder)
            undo.callback(self._waker.close)
            self._db = opened(folder)
            undo.callback(self._db.close)
            self._turn = Turn(folder)
            undo.pop_all()
        storage = Storage(self._db)
        self.board: SqliteBoard = SqliteBoard(self._db, self._waker)
        self.ledger: SqliteLedger = SqliteLedger(self._db)
        self.dead_letters: SqliteDeadLetters = SqliteDeadLetters(self._db, storage, self._waker)
        self.lanes: SqliteLanes = SqliteLanes(
            folder, self._db, storage, self.ledger, self.dead_letters, self._waker, self._turn
        )

    def close(self) -> None:
        """Close the files and the sockets."""
        self.lanes.close()
        self._waker.close()
        self._turn.close()
        self._db.close()


def _cleared(db: sqlite3.Connection, operator: str) -> int:
    # A batch that was done in part says how many events it once had.
    (dropped,) = db.execute(
        "SELECT coalesce(sum(arrived - consumed), 0) FROM lanes WHERE operator = ?", (operator,)
    ).fetchone()
    Storage(db).remove_all(operator)
    db.execute(
        "UPDATE lanes SET consumed = arrived, done_of_first = 0, "
        "ownership = ownership + (lane <> ?) WHERE operator = ?",
        (SHARED_LANE, operator),
    )
    db.execute(
        "INSERT INTO counts (operator, replica, processed, emitted, dropped, busy, cpu) "
        "VALUES (?, 0, 0, 0, ?, 0, 0) "
        "ON CONFLICT DO UPDATE SET dropped = dropped + excluded.dropped",
        (operator, dropped),
    )
    return int(dropped)
