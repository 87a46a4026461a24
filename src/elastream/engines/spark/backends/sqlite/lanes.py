"""The queues: batches that wait, in the order of their tickets."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from elastream.core.groupings import SHARED_QUEUE
from elastream.engines.spark.backends.base import ReplicaName, StoredBatch
from elastream.engines.spark.backends.sqlite.packing import packed, unpacked

_HEAD = 8
"""So many batches at the head of a queue may be under way already."""
_COLUMNS = "operator, replica, events, born, data, inquiry, ticket"


class Queues:
    """All queues of a pipeline; who changes them does so in a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, batches: Iterable[StoredBatch]) -> None:
        """Put them at the ends of their queues."""
        self._db.executemany(
            "INSERT INTO batches (operator, replica, events, born, data, inquiry) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [(b.operator, b.replica, b.events, b.born, b.data, packed(b.inquiry)) for b in batches],
        )

    def head(self, queue: ReplicaName, most: int) -> tuple[list[StoredBatch], bool]:
        """The first batches that nobody has taken, and whether there are more.

        At least one if there is any, and at most so many events.
        """
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM batches "
            "WHERE operator = ? AND replica = ? AND taken_by IS NULL ORDER BY ticket",
            queue,
        )
        batches: list[StoredBatch] = []
        events = 0
        for operator, replica, count, born, data, inquiry, ticket in rows:
            batch = StoredBatch(operator, replica, count, born, data, unpacked(inquiry), ticket)
            events += batch.events
            if batches and events > most:
                return batches, True
            batches.append(batch)
        return batches, False

    def any_free(self, queue: ReplicaName) -> bool:
        """Whether there is a batch that nobody has taken."""
        row = self._db.execute(
            "SELECT 1 FROM batches WHERE operator = ? AND replica = ? AND taken_by IS NULL LIMIT 1",
            queue,
        ).fetchone()
        return row is not None

    def mark_taken(self, batches: Iterable[StoredBatch], owner: str) -> None:
        """From now on they are this owner's."""
        self._db.executemany(
            "UPDATE batches SET taken_by = ? WHERE ticket = ?",
            [(owner, batch.ticket) for batch in batches],
        )

    def release(self, owner: str) -> None:
        """What this owner had taken is free again."""
        self._db.execute("UPDATE batches SET taken_by = NULL WHERE taken_by = ?", (owner,))

    def remove(self, batch: StoredBatch, owner: str) -> bool:
        """Take it out; False if it is not its owner's any more."""
        if batch.replica == SHARED_QUEUE:
            # What an owner has taken is freed as soon as somebody else has its place.
            removed = self._db.execute(
                "DELETE FROM batches WHERE ticket = ? AND taken_by = ?", (batch.ticket, owner)
            )
        else:
            removed = self._db.execute(
                "DELETE FROM batches WHERE ticket = ? AND replica = ? AND EXISTS (SELECT 1 FROM "
                "members m WHERE m.operator = batches.operator AND m.replica = batches.replica "
                "AND m.owner = ?)",
                (batch.ticket, batch.replica, owner),
            )
        return removed.rowcount == 1

    def share_out(self, operator: str, active: Sequence[int]) -> None:
        """Number what waits in each queue; deal out what is not at its head."""
        waiting = self._db.execute(
            "SELECT ticket FROM (SELECT ticket, row_number() OVER "
            "(PARTITION BY replica ORDER BY ticket) AS place FROM batches "
            "WHERE operator = ? AND replica <> ?) WHERE place > ? ORDER BY ticket",
            (operator, SHARED_QUEUE, _HEAD),
        ).fetchall()
        self._move([ticket for (ticket,) in waiting], active)

    def gather(self, operator: str, queues: Sequence[int]) -> None:
        """Deal out what waits elsewhere."""
        marks = ", ".join("?" * len(queues))
        strays = self._db.execute(
            f"SELECT ticket FROM batches WHERE operator = ? AND replica NOT IN ({marks})",
            (operator, *queues),
        ).fetchall()
        self._move([ticket for (ticket,) in strays], queues)

    def _move(self, tickets: Sequence[int], queues: Sequence[int]) -> None:
        self._db.executemany(
            "UPDATE batches SET replica = ? WHERE ticket = ?",
            [(queues[i % len(queues)], ticket) for i, ticket in enumerate(tickets)],
        )

    def waiting(self, operator: str) -> int:
        """The operator's queues, added up."""
        (events,) = self._db.execute(
            "SELECT coalesce(sum(events), 0) FROM queues WHERE operator = ?", (operator,)
        ).fetchone()
        return int(events)

    def lengths(self) -> Mapping[ReplicaName, int]:
        """How many events wait in each queue."""
        rows = self._db.execute("SELECT operator, replica, events FROM queues")
        return {(operator, replica): events for operator, replica, events in rows}
