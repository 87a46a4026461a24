"""What the tables keep when nobody works, as pieces that any backend can take."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping

from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.encoding import unit_from_json
from elastream.engines.spark.backends.kept import (
    Admitted,
    Counted,
    Kept,
    OutputBatch,
    OutputPosition,
    Waiting,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite.layout import note_chains, noted_layout
from elastream.engines.spark.backends.sqlite.ledger import SqliteLedger
from elastream.engines.spark.backends.sqlite.storage import Storage
from elastream.engines.spark.backends.sqlite.waiting import ROW, Cut, Row, WaitingEvents


def described(db: sqlite3.Connection) -> tuple[str, Mapping[str, OperatorLanes]] | None:
    """Whose state it is, and its layout."""
    row = db.execute("SELECT value FROM meta WHERE name = 'pipeline'").fetchone()
    if row is None:
        return None
    return row[0], noted_layout(db)


def kept(db: sqlite3.Connection) -> Iterator[Kept]:
    """Everything, of one moment."""
    db.execute("BEGIN DEFERRED")
    try:
        yield from _positions(db)
        for row in db.execute("SELECT source, admitted FROM feeds"):
            yield Admitted(*row)
        for member, counts in SqliteLedger(db).all_counts().items():
            yield Counted(member, counts)
        yield from _waiting(db)
        for row in db.execute(
            "SELECT operator, number, events, data FROM output_batches ORDER BY number"
        ):
            yield OutputBatch(*row)
        for row in db.execute(
            "SELECT operator, events, error, data, lane, time, number FROM dead_letters "
            "ORDER BY number"
        ):
            yield DeadLetter(*row)
    finally:
        db.execute("ROLLBACK")


def _positions(db: sqlite3.Connection) -> Iterator[OutputPosition]:
    given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'output_batches'").fetchone()
    newest = given[0] if given else 0
    for output, consumed, offered in db.execute(
        "SELECT operator, max(consumed), max(offered) FROM "
        "(SELECT * FROM outputs UNION ALL SELECT operator, 0, 0 FROM output_batches) "
        "GROUP BY operator"
    ):
        yield OutputPosition(output, consumed, max(newest, offered))


def _waiting(db: sqlite3.Connection) -> Iterator[Waiting]:
    waiting = WaitingEvents(db)
    done = {
        (operator, lane): events
        for operator, lane, events in db.execute("SELECT operator, lane, done_of_first FROM lanes")
    }
    for operator, unit, *values in db.execute(
        f"SELECT operator, unit, {ROW} FROM batches ORDER BY number"
    ):
        row = Row._make(values)
        first = done.pop((operator, row.lane), 0)
        (taken,) = waiting.taken([Cut(row, first, row.events - first)])
        data = taken.data
        if taken.chosen is not None:
            data = to_bytes(from_bytes(data, taken.chosen))
        named = unit_from_json(unit, first)
        yield Waiting(
            operator,
            row.lane,
            taken.events,
            taken.births,
            data,
            row.deaths,
            named._replace(first=0) if named else None,
        )


def restore(
    db: sqlite3.Connection,
    pipeline: str,
    operators: Mapping[str, OperatorLanes],
    pieces: Iterable[Kept],
) -> None:
    """Fill empty tables, in the caller's transaction."""
    db.execute("INSERT INTO meta VALUES ('pipeline', ?)", (pipeline,))
    for name, of in operators.items():
        db.execute("INSERT INTO layout VALUES (?, ?, ?, ?)", (name, of.lanes, of.key, of.shared))
        db.executemany(
            "INSERT INTO lanes (operator, lane) VALUES (?, ?)",
            [(name, lane) for lane in ([SHARED_LANE] if of.shared else range(of.lanes))],
        )
    note_chains(db, operators)
    ledger, storage, newest = SqliteLedger(db), Storage(db), 0
    for piece in pieces:
        match piece:
            case OutputPosition(output, consumed, given):
                db.execute("INSERT INTO outputs VALUES (?, ?, ?)", (output, consumed, given))
                newest = max(newest, given)
            case Admitted(source, number):
                db.execute("INSERT INTO feeds VALUES (?, ?)", (source, number))
            case Counted(member, counts):
                ledger.add(member, counts)
            case Waiting(operator, lane, events, births, data, deaths, unit):
                storage.put_back(Parcel(operator, lane, events, births, data), deaths, unit)
            case OutputBatch(output, number, events, data):
                db.execute(
                    "INSERT INTO output_batches VALUES (?, ?, ?, ?)",
                    (number, output, events, data),
                )
                _arrived(db, output, 0, events)
            case DeadLetter(operator, events, error, data, lane, time, number):
                db.execute(
                    "INSERT INTO dead_letters VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (number, operator, lane, events, error, data, time),
                )
    _never_again(db, newest)


def _arrived(db: sqlite3.Connection, operator: str, lane: int, events: int) -> None:
    db.execute(
        "INSERT INTO lanes (operator, lane, arrived) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET arrived = arrived + excluded.arrived",
        (operator, lane, events),
    )


def _never_again(db: sqlite3.Connection, newest: int) -> None:
    """Let the numbers of outputs continue after this one."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'output_batches'").fetchone()
    if row is None:
        db.execute("INSERT INTO sqlite_sequence VALUES ('output_batches', ?)", (newest,))
    elif row[0] < newest:
        db.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'output_batches'", (newest,))
