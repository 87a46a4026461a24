"""The embedded transport: one SQLite file in WAL mode, for the processes of one machine.

One file, because a commit must be all or nothing across queues. Writers take turns; a turn is
short, as batches are small and nothing is forced to the disk before its checkpoint. What a crash of
the machine may lose is the newest commits, never half of one.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from elastream.core.groupings import SHARED_QUEUE
from elastream.core.groupings.base import Utilization
from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.transport.base import (
    ActivePlan,
    Counts,
    DeadLetter,
    ReplicaName,
    StoredBatch,
    Totals,
    Transport,
)
from elastream.engines.spark.transport.bells import Bell, Ringer, remove_bells
from elastream.errors import InvalidInputError
from elastream.transactions import transaction

FILE = "elastream.db"
_BUSY_SECONDS = 30.0
_HEAD = 8
"""So many batches at the head of a queue may be under way already."""
_COLUMNS = "operator, replica, events, born, data, ticket"


class _NotOursError(Exception):
    """Somebody else acts for this replica, or has its batches."""


class SqliteTransport(Transport):
    """The transport in a state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._db = _open(folder)
        self._ringer = Ringer(folder)
        self._bell: Bell | None = None
        self._name: ReplicaName | None = None
        self._owner = f"{os.getpid()}:{uuid.uuid4().hex}"

    def claim(self, pipeline: str) -> None:
        """Write the pipeline down, or compare."""
        with transaction(self._db):
            self._db.execute("INSERT OR IGNORE INTO meta VALUES ('pipeline', ?)", (pipeline,))
        (owner,) = self._db.execute("SELECT value FROM meta WHERE name = 'pipeline'").fetchone()
        if owner != pipeline:
            raise InvalidInputError(
                f"the state folder {self.folder} belongs to another pipeline ({owner}): "
                "name another folder, or remove it"
            )

    def join(self, name: ReplicaName) -> None:
        """Become the owner; batches of the shared queue that the last owner took are free again."""
        self._name = name
        self._bell = Bell(self.folder, _bell_name(*name))
        with transaction(self._db):
            self._release(name)
            self._db.execute("DELETE FROM failures WHERE operator = ? AND replica = ?", name)
            self._db.execute("INSERT INTO members VALUES (?, ?, ?)", (*name, self._owner))

    def members(self) -> Mapping[ReplicaName, str]:
        """Read their names and owners."""
        rows = self._db.execute("SELECT operator, replica, owner FROM members")
        return {(operator, replica): owner for operator, replica, owner in rows}

    def dismiss(self, names: Sequence[ReplicaName] | None = None) -> None:
        """Forget the owners, and what they had taken."""
        with transaction(self._db):
            for name in self.members() if names is None else names:
                self._release(name)
        self._ringer.ring_all()

    def _release(self, name: ReplicaName) -> None:
        """What its owner had taken from the shared queue is free again."""
        owner = self._db.execute(
            "DELETE FROM members WHERE operator = ? AND replica = ? RETURNING owner", name
        ).fetchone()
        if owner:
            self._db.execute("UPDATE batches SET taken_by = NULL WHERE taken_by = ?", owner)

    def report_failure(self, name: ReplicaName, error: str) -> None:
        """Write the newest error down."""
        with transaction(self._db):
            self._db.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (*name, error))

    def failures(self) -> Mapping[ReplicaName, str]:
        """Read the newest errors."""
        rows = self._db.execute("SELECT operator, replica, error FROM failures")
        return {(operator, replica): error for operator, replica, error in rows}

    def owns(self) -> bool:
        """Look the owner up."""
        row = self._db.execute(
            "SELECT 1 FROM members WHERE operator = ? AND replica = ? AND owner = ?",
            (*self._joined, self._owner),
        ).fetchone()
        return row is not None

    def take(self, most: int, shared: bool) -> list[StoredBatch]:
        """Nobody else reads the own queue; from the shared one batches are taken by name."""
        operator, replica = self._joined
        queue = f"SELECT {_COLUMNS} FROM batches WHERE operator = ? AND replica = ?"
        if not shared:
            return self._next(queue, (operator, replica), most)
        free, place = f"{queue} AND taken_by IS NULL", (operator, SHARED_QUEUE)
        if not self._db.execute(f"{free} LIMIT 1", place).fetchone():
            return []
        with transaction(self._db):
            batches = self._next(free, place, most)
            self._db.executemany(
                "UPDATE batches SET taken_by = ? WHERE ticket = ?",
                [(self._owner, batch.ticket) for batch in batches],
            )
        return batches

    def _next(self, query: str, place: tuple[str, int], most: int) -> list[StoredBatch]:
        batches: list[StoredBatch] = []
        events = 0
        for row in self._db.execute(f"{query} ORDER BY ticket", place):
            batch = StoredBatch(*row)
            events += batch.events
            if batches and events > most:
                break
            batches.append(batch)
        return batches

    def commit(
        self,
        done: Sequence[StoredBatch],
        results: Sequence[StoredBatch],
        counts: Counts,
        dead: Sequence[DeadLetter] = (),
    ) -> bool:
        """One transaction: whoever is not the owner any more rolls back."""
        try:
            with transaction(self._db):
                self._remove(done)
                self._add(results, counts, dead)
        except _NotOursError:
            return False
        for operator, replica in {(batch.operator, batch.replica) for batch in results}:
            if replica == SHARED_QUEUE:
                self._ringer.ring_all(_bell_name(operator, ""))
            else:
                self._ringer.ring(_bell_name(operator, replica))
        return True

    def share_out(self, operator: str, active: Sequence[int]) -> None:
        """Number what waits in each queue; deal out what is not at its head."""
        with transaction(self._db):
            waiting = self._db.execute(
                "SELECT ticket FROM (SELECT ticket, row_number() OVER "
                "(PARTITION BY replica ORDER BY ticket) AS place FROM batches "
                "WHERE operator = ? AND replica <> ?) WHERE place > ? ORDER BY ticket",
                (operator, SHARED_QUEUE, _HEAD),
            ).fetchall()
            self._db.executemany(
                "UPDATE batches SET replica = ? WHERE ticket = ?",
                [(active[i % len(active)], ticket) for i, (ticket,) in enumerate(waiting)],
            )
        self._ringer.ring_all(_bell_name(operator, ""))

    def waiting(self, operator: str) -> int:
        """Add the operator's queues up."""
        (events,) = self._db.execute(
            "SELECT coalesce(sum(events), 0) FROM queues WHERE operator = ?", (operator,)
        ).fetchone()
        return int(events)

    def plan(self) -> ActivePlan:
        """The one with the highest version."""
        row = self._db.execute(
            "SELECT version, content FROM plans ORDER BY version DESC LIMIT 1"
        ).fetchone()
        if row is None:
            return ActivePlan({})
        content = json.loads(row[1])
        return ActivePlan(
            {name: tuple(replicas) for name, replicas in content["active"].items()},
            {
                name: Utilization(tuple(busy), per_event)
                for name, (busy, per_event) in content["utilization"].items()
            },
            row[0],
        )

    def publish(self, plan: ActivePlan) -> None:
        """Write the plan, forget the older ones, and ring all bells."""
        busy = {name: (of.of_replicas, of.per_event) for name, of in plan.utilization.items()}
        content = json.dumps({"active": dict(plan.active), "utilization": busy})
        with transaction(self._db):
            self._db.execute("INSERT INTO plans (content) VALUES (?)", (content,))
            self._db.execute("DELETE FROM plans WHERE version < (SELECT max(version) FROM plans)")
        self._ringer.ring_all()

    def totals(self) -> Totals:
        """Read everything in one snapshot."""
        with transaction(self._db, "DEFERRED"):
            counts = self._db.execute("SELECT * FROM counts").fetchall()
            sent = self._db.execute("SELECT * FROM sent").fetchall()
            latencies = self._db.execute("SELECT * FROM latencies").fetchall()
            queues = self._db.execute("SELECT * FROM queues").fetchall()
        targets: dict[ReplicaName, dict[str, int]] = {}
        for operator, replica, target, events in sent:
            targets.setdefault((operator, replica), {})[target] = events
        bins: dict[ReplicaName, dict[int, float]] = {}
        for operator, replica, number, events in latencies:
            bins.setdefault((operator, replica), {})[number] = events
        return Totals(
            counts={
                (operator, replica): Counts(
                    processed,
                    emitted,
                    dropped,
                    busy,
                    cpu,
                    targets.get((operator, replica), {}),
                    LatencyHistogram(bins.get((operator, replica), {})),
                )
                for operator, replica, processed, emitted, dropped, busy, cpu in counts
            },
            queued={(operator, replica): events for operator, replica, events in queues},
        )

    def dead_letters(self) -> list[DeadLetter]:
        """Read them in the order in which they came."""
        rows = self._db.execute(
            "SELECT operator, events, error, data FROM dead_letters ORDER BY number"
        )
        return [DeadLetter(*row) for row in rows]

    def wait(self, seconds: float) -> None:
        """Sleep by the own bell; a process that has not joined just sleeps."""
        if self._bell:
            self._bell.wait(seconds)
        else:
            time.sleep(seconds)

    def sweep(self) -> None:
        """Take all bells down."""
        remove_bells(self.folder)

    def close(self) -> None:
        """Close the file and the sockets."""
        self._db.close()
        self._ringer.close()
        if self._bell:
            self._bell.close()

    @property
    def _joined(self) -> ReplicaName:
        assert self._name is not None, "join first"
        return self._name

    def _remove(self, done: Sequence[StoredBatch]) -> None:
        """Remove the batches if every one is still ours."""
        if not self.owns():
            raise _NotOursError
        for batch in done:
            shared = batch.replica == SHARED_QUEUE
            mine = "taken_by = ?" if shared else "replica = ?"
            removed = self._db.execute(
                f"DELETE FROM batches WHERE ticket = ? AND {mine}",
                (batch.ticket, self._owner if shared else batch.replica),
            )
            if removed.rowcount != 1:
                raise _NotOursError

    def _add(
        self, results: Sequence[StoredBatch], counts: Counts, dead: Sequence[DeadLetter]
    ) -> None:
        self._db.executemany(
            "INSERT INTO batches (operator, replica, events, born, data) VALUES (?, ?, ?, ?, ?)",
            [(b.operator, b.replica, b.events, b.born, b.data) for b in results],
        )
        self._add_counts(counts)
        now = time.time()
        self._db.executemany(
            "INSERT INTO dead_letters (operator, events, error, data, time) VALUES (?, ?, ?, ?, ?)",
            [(d.operator, d.events, d.error, d.data, now) for d in dead],
        )

    def _add_counts(self, counts: Counts) -> None:
        name = self._joined
        self._db.execute(
            "INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "processed = processed + excluded.processed, emitted = emitted + excluded.emitted, "
            "dropped = dropped + excluded.dropped, busy = busy + excluded.busy, "
            "cpu = cpu + excluded.cpu",
            (*name, counts.processed, counts.emitted, counts.dropped, counts.busy, counts.cpu),
        )
        add = "ON CONFLICT DO UPDATE SET events = events + excluded.events"
        self._db.executemany(
            f"INSERT INTO sent VALUES (?, ?, ?, ?) {add}",
            [(*name, target, events) for target, events in counts.sent.items()],
        )
        if counts.latency:
            self._db.executemany(
                f"INSERT INTO latencies VALUES (?, ?, ?, ?) {add}",
                [(*name, number, events) for number, events in counts.latency.bins.items()],
            )


def _open(folder: Path) -> sqlite3.Connection:
    db = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(
            folder / FILE, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        # Consumed batches leave free pages, which new ones use again: the file stays as large as
        # its fullest moment. The log is cut back to this size whenever it was larger.
        db.execute("PRAGMA journal_size_limit = 67108864")
        db.executescript(files(__package__).joinpath("schema.sql").read_text())
    except (OSError, sqlite3.Error) as error:
        if db:
            db.close()
        raise InvalidInputError(f"the state folder {folder} cannot be used: {error}") from None
    return db


def _bell_name(operator: str, replica: int | str) -> str:
    return f"{operator}.{replica}"
