"""History: every cycle in an SQLite file that other tools can read, too.

| table | a row is | columns besides the key |
| --- | --- | --- |
| `cycles` | one cycle | time, at, td, latency (s), input, forecast, model, outcome, executors |
| `operators` | an operator in a cycle | its statistics; active, proposed and planned replicas |
| `edges` | an edge in a cycle | events |
| `samples` | a sampling window of the input | events |
| `changes` | a change that was asked for | before, after, reasons (text), facts (JSON) |
| `steering` | a change that a person made | the cycle before, time, at (s since 1970), who, what |

Short cycles that change nothing, only ask again for what the one before asked for, or fail or are
skipped for the same reason again, are thinned: they are added up to one of at least a second, of
which `td` is how long it was. Of changes that are asked for again and again, only the first are
recorded. What is older than a week is removed.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from elastream.control.loop import Cycle
from elastream.control.settings import Steered
from elastream.core.joining import joined
from elastream.errors import InvalidInputError
from elastream.transactions import transaction

_SCHEMA = Path(__file__).with_name("history.sql").read_text()
KEPT_SECONDS = 7 * 86_400.0
THINNED_SECONDS = 1.0
"""Cycles that change nothing new are recorded once in this many seconds."""
HISTORY = "history.db"
"""The name of the file in a run's folder."""
APPLICATION_ID = 0x656C6173
"""Spells "elas", so that another program's database is not taken for ours."""


class History:
    """Records the cycles of one pipeline; `HistoryReader` reads them, also at the same time.

    Args:
        path: The file; created if it is missing.
        keep: How many seconds to keep cycles and people's changes.
        time_of_day: Seconds since 1970.
    """

    def __init__(
        self,
        path: Path,
        keep: float = KEPT_SECONDS,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        if not keep > 0:
            raise InvalidInputError(f"keep={keep}: a history keeps more than 0 seconds")
        self.path = path
        self._keep = keep
        self._time_of_day = time_of_day
        self._thinned: list[Cycle] = []
        self._held_from = 0.0
        """When the first of them began."""
        self._before: Cycle | None = None
        self._lock = Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._prepare()
        except sqlite3.Error as error:
            raise InvalidInputError(f"{path}: cannot be a history: {error}") from None

    def record(self, entry: Cycle | Steered) -> None:
        """Add a cycle or a person's change, all of it or nothing, and remove what is too old.

        Any thread may call it.
        """
        with self._lock:
            quiet = False
            if isinstance(entry, Cycle):
                before, self._before = self._before, entry
                quiet = entry.is_quiet_after(before)
                if quiet and self._hold_back(entry, before):
                    return
            self._thinned = _added_up(self._thinned)
            with transaction(self._db):
                for cycle in self._thinned:
                    self._insert(cycle)
                if isinstance(entry, Steered):
                    self._insert_steered(entry)
                elif not quiet:
                    self._insert(entry)
            self._thinned = []  # Not before: a disk may be full for a moment.

    def close(self) -> None:
        """Record what was held back, and close the file."""
        with self._lock, closing(self._db):
            if self._thinned:
                with transaction(self._db):
                    self._insert(*_added_up(self._thinned))

    def _hold_back(self, cycle: Cycle, before: Cycle | None) -> bool:
        """Keep a cycle until there is enough to be recorded together; False if there is."""
        if not self._thinned:
            self._held_from = before.time if before else _began(cycle)
        self._thinned.append(replace(cycle, changes=()))
        # A clock is never quite exact.
        return cycle.time - self._held_from < 0.9 * THINNED_SECONDS

    def _prepare(self) -> None:
        (owner,) = self._db.execute("PRAGMA application_id").fetchone()
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,)
        if owner != APPLICATION_ID and tables:
            raise sqlite3.DatabaseError("it is a database of another program")
        # Readers must not wait for the loop, nor the loop for them.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._db.executescript(_SCHEMA)
        columns = [row[1] for row in self._db.execute("PRAGMA table_info(cycles)")]
        if "at" not in columns:  # A history of an earlier version: its cycles are taken for new.
            self._db.execute("ALTER TABLE cycles ADD COLUMN at REAL")
            self._db.execute("UPDATE cycles SET at = ?", (self._time_of_day(),))
        for missing in {"executors", "executor_seconds"} - set(columns):
            self._db.execute(f"ALTER TABLE cycles ADD COLUMN {missing} REAL")
        self._db.execute("CREATE INDEX IF NOT EXISTS cycles_at ON cycles (at)")

    def _insert_steered(self, steered: Steered) -> None:
        self._db.execute(
            "INSERT INTO steering (cycle, time, at, who, what) "
            "VALUES ((SELECT coalesce(max(cycle), 0) FROM cycles), ?, ?, ?, ?)",
            (steered.time, steered.at, steered.who, steered.what),
        )
        oldest = self._time_of_day() - self._keep
        self._db.execute("DELETE FROM steering WHERE at < ?", (oldest,))

    def _insert(self, cycle: Cycle) -> None:
        number = self._insert_cycle(cycle)
        if cycle.stats:
            self._insert_stats(number, cycle)
        self._insert_changes(number, cycle)
        self._db.execute("DELETE FROM cycles WHERE at < ?", (self._time_of_day() - self._keep,))

    def _insert_cycle(self, cycle: Cycle) -> int:
        stats, forecast = cycle.stats, cycle.forecast
        latency = stats.latency if stats else None
        executors = stats.executors if stats else None
        cursor = self._db.execute(
            "INSERT INTO cycles (time, td, input, forecast, model, outcome, note, latency_mean, "
            "latency_p50, latency_p95, latency_p99, at, executors, executor_seconds) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                cycle.time,
                stats.duration if stats else None,
                stats.input if stats else None,
                float(forecast.values[0]) if forecast else None,
                forecast.model if forecast else None,
                cycle.outcome,
                cycle.note,
                *((latency.mean, latency.p50, latency.p95, latency.p99) if latency else [None] * 4),
                self._time_of_day(),
                executors.present if executors else None,
                executors.seconds if executors else None,
            ),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _insert_stats(self, number: int, cycle: Cycle) -> None:
        assert cycle.stats is not None
        proposed = cycle.proposal.replicas if cycle.proposal else {}
        planned = cycle.plan.replicas if cycle.plan else {}
        self._insert_many(
            "operators",
            (
                (
                    number,
                    name,
                    of.received,
                    of.processed,
                    of.emitted,
                    of.queued,
                    of.dropped,
                    of.busy,
                    of.active,
                    proposed.get(name),
                    planned.get(name),
                )
                for name, of in cycle.stats.operators.items()
            ),
        )
        self._insert_many("edges", ((number, *edge, n) for edge, n in cycle.stats.edges.items()))
        samples = enumerate(cycle.stats.samples.tolist())
        self._insert_many("samples", ((number, position, n) for position, n in samples))

    def _insert_changes(self, number: int, cycle: Cycle) -> None:
        self._insert_many(
            "changes",
            (
                (
                    number,
                    change.operator,
                    change.before,
                    change.after,
                    "; ".join(map(str, change.reasons)),
                    json.dumps({reason.rule: dict(reason.facts) for reason in change.reasons}),
                )
                for change in cycle.changes
            ),
        )

    def _insert_many(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        listed = list(rows)
        if listed:
            places = ", ".join("?" * len(listed[0]))
            self._db.executemany(f"INSERT INTO {table} VALUES ({places})", listed)


def _began(cycle: Cycle) -> float:
    return cycle.time - (cycle.stats.duration if cycle.stats else 0.0)


def _added_up(held: list[Cycle]) -> list[Cycle]:
    """Cycles as one: counts add up, all else is as in the last."""
    if not held:
        return []
    last, stats = held[-1], [cycle.stats for cycle in held if cycle.stats]
    if not stats:
        return [last]
    whole, forecast = joined(stats, stats[-1].interval), last.forecast
    if forecast is not None:
        longer = whole.duration / stats[-1].duration
        forecast = replace(forecast, values=longer * forecast.values)
    return [replace(last, stats=whole, forecast=forecast)]
