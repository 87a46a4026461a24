"""What members have counted, and how long lanes are."""

from __future__ import annotations

import sqlite3

from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.backends.base import (
    Counts,
    LaneState,
    Ledger,
    MemberName,
    Totals,
)

_ADD = "ON CONFLICT DO UPDATE SET events = events + excluded.events"


class SqliteLedger(Ledger):
    """The counts of all members, in the file that a connection is to."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, name: MemberName, counts: Counts) -> None:
        """Add to what the member did before, in the caller's transaction."""
        self._db.execute(
            "INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "processed = processed + excluded.processed, emitted = emitted + excluded.emitted, "
            "dropped = dropped + excluded.dropped, busy = busy + excluded.busy, "
            "cpu = cpu + excluded.cpu, saturated = saturated + excluded.saturated, "
            "saturated_events = saturated_events + excluded.saturated_events",
            (
                *name,
                counts.processed,
                counts.emitted,
                counts.dropped,
                counts.busy,
                counts.cpu,
                counts.saturated,
                counts.saturated_events,
            ),
        )
        for target, events in counts.sent.items():
            self._db.execute(
                f"INSERT INTO sent VALUES (?, ?, ?, ?, ?) {_ADD}, lost = lost + excluded.lost",
                (*name, target, events, counts.lost.get(target, 0)),
            )
        if counts.latency:
            self._db.executemany(
                f"INSERT INTO latencies VALUES (?, ?, ?, ?) {_ADD}",
                [(*name, number, events) for number, events in counts.latency.bins.items()],
            )
        for operator, of in counts.chained.items():
            self.add((operator, name[1]), of)

    def counts(self, name: MemberName) -> Counts:
        """Its row."""
        row = self._db.execute(
            "SELECT processed, emitted, dropped, busy, cpu FROM counts "
            "WHERE operator = ? AND replica = ?",
            name,
        ).fetchone()
        return Counts(*row) if row else Counts()

    def totals(self) -> Totals:
        """Everything, of one moment."""
        self._db.execute("BEGIN DEFERRED")
        try:
            return Totals(self.all_counts(), self._lanes())
        finally:
            self._db.execute("COMMIT")

    def _lanes(self) -> dict[str, dict[int, LaneState]]:
        lanes: dict[str, dict[int, LaneState]] = {}
        for operator, lane, replica, arrived, consumed in self._db.execute(
            "SELECT operator, lane, replica, arrived, consumed FROM lanes"
        ):
            state = LaneState(arrived, arrived - consumed, replica)
            lanes.setdefault(operator, {})[lane] = state
        return lanes

    def all_counts(self) -> dict[MemberName, Counts]:
        """Of every member, in the caller's transaction."""
        targets: dict[MemberName, dict[str, int]] = {}
        losses: dict[MemberName, dict[str, int]] = {}
        for operator, replica, target, events, lost in self._db.execute("SELECT * FROM sent"):
            targets.setdefault((operator, replica), {})[target] = events
            losses.setdefault((operator, replica), {})[target] = lost
        bins: dict[MemberName, dict[int, float]] = {}
        for operator, replica, number, events in self._db.execute("SELECT * FROM latencies"):
            bins.setdefault((operator, replica), {})[number] = events
        return {
            (operator, replica): Counts(*counted)._replace(
                saturated=saturated,
                saturated_events=saturated_events,
                sent=targets.get((operator, replica), {}),
                lost=losses.get((operator, replica), {}),
                latency=LatencyHistogram(bins.get((operator, replica), {})),
            )
            for operator, replica, *counted, saturated, saturated_events in self._db.execute(
                "SELECT * FROM counts"
            )
        }
