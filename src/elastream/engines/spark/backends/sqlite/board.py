"""The board: the plan, roles and members, failures, and what replicas let producers know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from elastream.core.groupings.base import Feedback
from elastream.engines.spark.backends.board import NO_PLAN, Board, LanePlan
from elastream.engines.spark.backends.encoding import (
    feedback_from_json,
    feedback_kind,
    feedback_to_json,
    plan_from_json,
    plan_to_json,
)
from elastream.engines.spark.backends.members import Attendance, MemberName
from elastream.engines.spark.backends.sqlite.database import writing
from elastream.engines.spark.backends.sqlite.lanes import free_taken
from elastream.engines.spark.backends.sqlite.storage import Storage
from elastream.engines.spark.backends.sqlite.wakeup import NEWS, Waker
from elastream.errors import BackendUnavailableError

_ALL: MemberName = ("", 0)
"""Stands for every producer."""
_RUNNING = "generation = (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'started')"
"""Of roles and failures: those of the running generation."""


class SqliteBoard(Board):
    """A few small tables."""

    def __init__(self, db: sqlite3.Connection, waker: Waker) -> None:
        self._db = db
        self._waker = waker
        self._published: LanePlan | None = None

    def plan(self, known: LanePlan = NO_PLAN) -> LanePlan:
        """Read the newest one, if it is newer."""
        row = self._db.execute(
            "SELECT version, content FROM plans WHERE version > ? ORDER BY version DESC LIMIT 1",
            (known.version,),
        ).fetchone()
        return known if row is None else plan_from_json(row[1], row[0])

    def publish(self, plan: LanePlan) -> None:
        """Write the plan, forget the older ones, and wake members that are, or were, to work."""
        with writing(self._db):
            self._db.execute("INSERT INTO plans (content) VALUES (?)", (plan_to_json(plan),))
            self._db.execute("DELETE FROM plans WHERE version < (SELECT max(version) FROM plans)")
        before, self._published = self._published or plan, plan
        at_work = {
            (operator, replica)
            for active in (before.active, plan.active)
            for operator, replicas in active.items()
            for replica in replicas
        }
        self._waker.wake_all_but_idle(plan.active, at_work)

    def new_generation(self, roles: Sequence[MemberName]) -> int:
        """Write the roles under the next number."""
        with writing(self._db):
            (generation,) = self._db.execute(
                "INSERT INTO meta VALUES ('generation', 1) "
                "ON CONFLICT DO UPDATE SET value = value + 1 RETURNING CAST(value AS INTEGER)"
            ).fetchone()
            self._db.executemany(
                "INSERT INTO roles (generation, priority, operator, replica) VALUES (?, ?, ?, ?)",
                [(generation, priority, *role) for priority, role in enumerate(roles)],
            )
        return int(generation)

    def take_role(self, generation: int, worker: int) -> MemberName | None:
        """The worker's own row, or the first one without a worker."""
        with writing(self._db):
            row = self._db.execute(
                "SELECT operator, replica, priority FROM roles WHERE generation = ? AND "
                "(worker = ? OR worker IS NULL) ORDER BY worker IS NULL, priority LIMIT 1",
                (generation, worker),
            ).fetchone()
            if row is None:
                return None
            operator, replica, priority = row
            self._db.execute(
                "UPDATE roles SET worker = ? WHERE generation = ? AND priority = ?",
                (worker, generation, priority),
            )
        return operator, replica

    def report_ready(self, generation: int, role: MemberName) -> None:
        """Mark the role."""
        with writing(self._db):
            self._db.execute(
                "UPDATE roles SET ready = 1 WHERE generation = ? AND operator = ? AND replica = ?",
                (generation, *role),
            )

    def ready(self, generation: int) -> frozenset[MemberName]:
        """Read the marked ones."""
        rows = self._db.execute(
            "SELECT operator, replica FROM roles WHERE generation = ? AND ready", (generation,)
        )
        return frozenset((operator, replica) for operator, replica in rows)

    def start(self, generation: int) -> None:
        """Write the number down, and remove the roles and the failures of all others."""
        with writing(self._db):
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('started', ?)", (generation,))
            self._db.execute("DELETE FROM roles WHERE generation <> ?", (generation,))
            self._db.execute("DELETE FROM failures WHERE generation <> ?", (generation,))

    def may_begin(self, generation: int, role: MemberName) -> bool | None:
        """Compare the numbers."""
        row = self._db.execute(
            "SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'started') = generation "
            "FROM roles WHERE generation = ? AND operator = ? AND replica = ?",
            (generation, *role),
        ).fetchone()
        return None if row is None else bool(row[0])

    def abandon(self, generation: int) -> None:
        """Remove the roles and the failures."""
        with writing(self._db):
            self._db.execute("DELETE FROM roles WHERE generation = ?", (generation,))
            self._db.execute("DELETE FROM failures WHERE generation = ?", (generation,))

    def reassign(self, role: MemberName, to: MemberName) -> bool:
        """Move the worker from one row to the other, and dismiss it from the first."""
        with writing(self._db):
            row = self._db.execute(
                f"SELECT worker FROM roles WHERE operator = ? AND replica = ? AND {_RUNNING}", role
            ).fetchone()
            worker = row[0] if row else None
            given = 0
            if worker is not None:
                given = self._db.execute(
                    "UPDATE roles SET worker = ? "
                    f"WHERE operator = ? AND replica = ? AND worker IS NULL AND {_RUNNING}",
                    (worker, *to),
                ).rowcount
            if given:
                self._free(role)
        if given:
            self._waker.wake(role, NEWS)
        return bool(given)

    def roles(self) -> Mapping[MemberName, int | None]:
        """Read them in their order."""
        rows = self._db.execute(
            f"SELECT operator, replica, worker FROM roles WHERE {_RUNNING} ORDER BY priority"
        )
        return {(operator, replica): worker for operator, replica, worker in rows}

    def vacate(self, names: Sequence[MemberName]) -> None:
        """Clear their rows, and dismiss whoever acts for them."""
        with writing(self._db):
            for name in names:
                self._free(name)
        for name in names:
            self._waker.wake(name, NEWS)

    def _free(self, role: MemberName) -> None:
        self._db.execute(
            "UPDATE roles SET worker = NULL, ready = 0 "
            f"WHERE operator = ? AND replica = ? AND {_RUNNING}",
            role,
        )
        self._remove(role)

    def report_deaths(self, dead: Mapping[MemberName, str]) -> None:
        """Note them on batches, and remove the rows of the dead."""
        with writing(self._db):
            members, storage = self.members(), Storage(self._db)
            for name, process in dead.items():
                if name in members and members[name].process == process:
                    storage.note_death(name, process)
                    self._remove(name)
        self._waker.wake_all(what=NEWS)

    def members(self) -> Mapping[MemberName, Attendance]:
        """Read them."""
        rows = self._db.execute(
            "SELECT operator, replica, process, generation, heartbeat, busy_for FROM members"
        )
        return {(operator, replica): Attendance(*of) for operator, replica, *of in rows}

    def dismiss(self, names: Sequence[MemberName] | None = None) -> None:
        """Remove them, and set their lanes free."""
        with writing(self._db):
            for name in self.members() if names is None else names:
                self._remove(name)
            if names is None:
                self._db.execute("DELETE FROM roles")
                self._db.execute("DELETE FROM failures")
                # Replicas of another pool may have posted it.
                self._db.execute("DELETE FROM feedback")
        self._waker.wake_all(what=NEWS)

    def _remove(self, name: MemberName) -> None:
        row = self._db.execute(
            "DELETE FROM members WHERE operator = ? AND replica = ? RETURNING process", name
        ).fetchone()
        if row:
            free_taken(self._db, row[0])
        self._db.execute(
            "UPDATE lanes SET replica = NULL, ownership = ownership + 1 "
            "WHERE operator = ? AND replica = ?",
            name,
        )

    def beat(self, name: MemberName, busy_for: float = 0.0) -> None:
        """Count."""
        with writing(self._db):
            self._db.execute(
                "UPDATE members SET heartbeat = heartbeat + 1, busy_for = ? "
                "WHERE operator = ? AND replica = ?",
                (busy_for, *name),
            )

    def probe(self) -> None:
        """Count in a separate row."""
        try:
            with writing(self._db):
                self._db.execute(
                    "INSERT INTO meta VALUES ('probed', 1) "
                    "ON CONFLICT DO UPDATE SET value = value + 1"
                )
        except BackendUnavailableError:
            # It may be our own log that fills the disk: what it holds goes to the file.
            with suppress(BackendUnavailableError, sqlite3.OperationalError):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raise

    def report_failure(self, generation: int, name: MemberName, error: str) -> None:
        """Write the newest error down."""
        with writing(self._db):
            self._db.execute(
                "INSERT OR REPLACE INTO failures (generation, operator, replica, error) "
                "VALUES (?, ?, ?, ?)",
                (generation, *name, error),
            )

    def failures(self, generation: int | None = None) -> Mapping[MemberName, str]:
        """Read the newest errors."""
        query = "SELECT operator, replica, error FROM failures WHERE "
        if generation is None:
            rows = self._db.execute(query + _RUNNING)
        else:
            rows = self._db.execute(query + "generation = ?", (generation,))
        return {(operator, replica): error for operator, replica, error in rows}

    def post(
        self, sender: MemberName, feedback: Feedback, producers: Iterable[MemberName] | None = None
    ) -> None:
        """Write it down; producers look when they look for a plan."""
        kind, content = feedback_kind(feedback), feedback_to_json(feedback)
        with writing(self._db):
            self._db.executemany(
                "INSERT OR REPLACE INTO feedback "
                "(producer, number, operator, replica, kind, content) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (*producer, *sender, kind, content)
                    for producer in ([_ALL] if producers is None else producers)
                ],
            )

    def feedback(
        self, producer: MemberName, operators: Sequence[str], after: int
    ) -> tuple[int, list[tuple[str, Feedback]]]:
        """Read what has a higher version."""
        rows = self._db.execute(
            "SELECT version, operator, kind, content FROM feedback WHERE version > ? "
            "AND (producer = '' OR (producer = ? AND number = ?)) ORDER BY version",
            (after, *producer),
        ).fetchall()
        newest = rows[-1][0] if rows else after
        return newest, [
            (operator, feedback_from_json(kind, content))
            for _, operator, kind, content in rows
            if operator in operators
        ]
