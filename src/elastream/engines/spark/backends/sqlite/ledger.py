"""What members have counted, and how long lanes are."""

from __future__ import annotations

import json
import sqlite3
from functools import cache

from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.backends.ledger import Counts, LaneState, LaneStates, Ledger, Totals
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.sqlite.database import reading

Sent = dict[str, tuple[int, int]]
"""By successor: events that went there, and those of them that were lost."""


class SqliteLedger(Ledger):
    """The counts of all members, in the file that a connection is to."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._sent: dict[MemberName, tuple[Sent, str | None]] = {}
        """Of the members that we count for, also as it is stored."""

    def forget(self) -> None:
        """Another may have counted for our members, or what we have counted was not committed."""
        self._sent.clear()

    def add(self, name: MemberName, counts: Counts) -> None:
        """Add to what the member did before, in the caller's transaction."""
        if not self._add(name, counts):
            # For an operator inside a chain, whoever lets dead letters in counts, too.
            del self._sent[name]
            self._add(name, counts)
        if counts.latency:
            self._db.executemany(
                "INSERT INTO latencies VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET events = events + excluded.events",
                [(*name, number, events) for number, events in counts.latency.bins.items()],
            )
        for operator, of in counts.chained.items():
            self.add((operator, name[1]), of)

    def _add(self, name: MemberName, counts: Counts) -> bool:
        """Whether what it has sent was as we know it; if not, nothing has happened."""
        before, sent = self._sent_with(name, counts) if counts.sent else (None, None)
        added = self._db.execute(
            "INSERT INTO counts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) "
            "ON CONFLICT DO UPDATE SET "
            "processed = processed + excluded.processed, emitted = emitted + excluded.emitted, "
            "dropped = dropped + excluded.dropped, busy = busy + excluded.busy, "
            "cpu = cpu + excluded.cpu, saturated = saturated + excluded.saturated, "
            "saturated_events = saturated_events + excluded.saturated_events, "
            "sent = coalesce(excluded.sent, sent), units = units + excluded.units, "
            "squares = squares + excluded.squares "
            "WHERE excluded.sent IS NULL OR counts.sent IS ?13",
            (
                *name,
                counts.processed,
                counts.emitted,
                counts.dropped,
                counts.busy,
                counts.cpu,
                counts.saturated,
                counts.saturated_events,
                sent,
                counts.units,
                counts.squares,
                before,
            ),
        )
        return added.rowcount == 1

    def _sent_with(self, name: MemberName, counts: Counts) -> tuple[str | None, str]:
        """What the member has sent, without these and with them, as it is stored."""
        known = self._sent.get(name)
        if known is None:
            row = self._db.execute(
                "SELECT sent FROM counts WHERE operator = ? AND replica = ?", name
            ).fetchone()
            stored = row[0] if row else None
            known = _sent_from(stored), stored
        sent, stored = known
        for target, events in counts.sent.items():
            before, lost = sent.get(target, (0, 0))
            sent[target] = before + events, lost + counts.lost.get(target, 0)
        # As JSON. It is written with every commit, and only its numbers change.
        written = []
        for target, (events, lost) in sent.items():
            written.append(f"{_quoted(target)}: [{events}, {lost}]")
        text = f"{{{', '.join(written)}}}"
        self._sent[name] = sent, text
        return stored, text

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
        with reading(self._db):
            return Totals(self.all_counts(), self.lanes())

    def lanes(self) -> LaneStates:
        """Read them."""
        lanes: dict[str, dict[int, LaneState]] = {}
        for operator, lane, replica, arrived, consumed in self._db.execute(
            "SELECT operator, lane, replica, arrived, consumed FROM lanes"
        ):
            state = LaneState(arrived, arrived - consumed, replica)
            lanes.setdefault(operator, {})[lane] = state
        return lanes

    def all_counts(self) -> dict[MemberName, Counts]:
        """Of every member, in the caller's transaction."""
        # A row for every bin would be many objects: they come as two lists for every member.
        latencies = {
            (operator, replica): LatencyHistogram(
                dict(zip(json.loads(bins), json.loads(events), strict=True))
            )
            for operator, replica, bins, events in self._db.execute(
                "SELECT operator, replica, json_group_array(bin), json_group_array(events) "
                "FROM latencies GROUP BY operator, replica"
            )
        }
        found = {}
        for operator, replica, text, *counted in self._db.execute(
            "SELECT operator, replica, sent, processed, emitted, dropped, busy, cpu, saturated, "
            "saturated_events, units, squares FROM counts"
        ):
            name, sent = (operator, replica), _sent_from(text)
            processed, emitted, dropped, busy, cpu, *rest = counted
            found[name] = Counts(
                processed,
                emitted,
                dropped,
                busy,
                cpu,
                {target: events for target, (events, _) in sent.items()},
                {target: lost for target, (_, lost) in sent.items()},
                latencies.get(name),
                *rest,
            )
        return found


@cache
def _quoted(target: str) -> str:
    return json.dumps(target)


def _sent_from(text: str | None) -> Sent:
    return json.loads(text) if text else {}
