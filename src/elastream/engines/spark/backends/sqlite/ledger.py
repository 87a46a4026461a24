"""What replicas have counted."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.backends.base import Counts, ReplicaName


class Tally:
    """The counts of all replicas; who changes them does so in a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, name: ReplicaName, counts: Counts) -> None:
        """Add to what the replica did before."""
        self._db.execute(
            "INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "processed = processed + excluded.processed, emitted = emitted + excluded.emitted, "
            "dropped = dropped + excluded.dropped, busy = busy + excluded.busy, "
            "cpu = cpu + excluded.cpu",
            (*name, counts.processed, counts.emitted, counts.dropped, counts.busy, counts.cpu),
        )
        add = "ON CONFLICT DO UPDATE SET events = events + excluded.events"
        self._db.executemany(
            f"INSERT INTO sent VALUES (?, ?, ?, ?, ?) {add}, lost = lost + excluded.lost",
            [
                (*name, target, events, counts.lost.get(target, 0))
                for target, events in counts.sent.items()
            ],
        )
        if counts.latency:
            self._db.executemany(
                f"INSERT INTO latencies VALUES (?, ?, ?, ?) {add}",
                [(*name, number, events) for number, events in counts.latency.bins.items()],
            )

    def read(self) -> Mapping[ReplicaName, Counts]:
        """All counts; in a transaction, they are of one moment."""
        targets: dict[ReplicaName, dict[str, int]] = {}
        losses: dict[ReplicaName, dict[str, int]] = {}
        for operator, replica, target, events, lost in self._db.execute("SELECT * FROM sent"):
            targets.setdefault((operator, replica), {})[target] = events
            losses.setdefault((operator, replica), {})[target] = lost
        bins: dict[ReplicaName, dict[int, float]] = {}
        for operator, replica, number, events in self._db.execute("SELECT * FROM latencies"):
            bins.setdefault((operator, replica), {})[number] = events
        return {
            (operator, replica): Counts(
                processed,
                emitted,
                dropped,
                busy,
                cpu,
                targets.get((operator, replica), {}),
                losses.get((operator, replica), {}),
                LatencyHistogram(bins.get((operator, replica), {})),
            )
            for operator, replica, processed, emitted, dropped, busy, cpu in self._db.execute(
                "SELECT * FROM counts"
            )
        }
