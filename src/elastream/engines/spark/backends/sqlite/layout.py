"""The layout of an operator's lanes, and how what waits is moved when it changes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping

from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.encoding import unit_from_json
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.moving import new_lanes, pieces
from elastream.engines.spark.backends.parcels import Parcel, Taken, Unit
from elastream.engines.spark.backends.sqlite.database import writing
from elastream.engines.spark.backends.sqlite.storage import Storage
from elastream.engines.spark.backends.sqlite.waiting import ROW, Cut, Row, WaitingEvents

_CHAINED = "chained"
"""Which operators are chained, in the table of what holds for the whole state."""


def lay_out(db: sqlite3.Connection, operator: str, wanted: OperatorLanes) -> None:
    """Make the lanes; what waits under another layout is moved, in its order."""
    row = db.execute(
        "SELECT lanes, key, shared FROM layout WHERE operator = ?", (operator,)
    ).fetchone()
    if row and (row[0], row[1], bool(row[2])) == (wanted.lanes, wanted.key, wanted.shared):
        return
    with writing(db):
        _move(db, operator, wanted)
        db.execute(
            "INSERT OR REPLACE INTO layout VALUES (?, ?, ?, ?)",
            (operator, wanted.lanes, wanted.key, wanted.shared),
        )
        lanes = [SHARED_LANE] if wanted.shared else range(wanted.lanes)
        db.executemany(
            "INSERT OR IGNORE INTO lanes (operator, lane) VALUES (?, ?)",
            [(operator, lane) for lane in lanes],
        )


def note_chains(db: sqlite3.Connection, operators: Mapping[str, OperatorLanes]) -> None:
    """Write down which operators get their events without a lane, and from whom.

    In the caller's transaction.
    """
    chained = {name: of.chained_to for name, of in operators.items() if of.chained_to}
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_CHAINED, json.dumps(chained)))


def noted_layout(db: sqlite3.Connection) -> dict[str, OperatorLanes]:
    """The layout of every operator."""
    row = db.execute("SELECT value FROM meta WHERE name = ?", (_CHAINED,)).fetchone()
    chained = json.loads(row[0]) if row else {}
    return {
        name: OperatorLanes(lanes, key, bool(shared), chained.get(name))
        for name, lanes, key, shared in db.execute("SELECT * FROM layout")
    }


def _move(db: sqlite3.Connection, operator: str, wanted: OperatorLanes) -> None:
    """Take everything out, and put it back where it belongs now."""
    storage, waiting = Storage(db), WaitingEvents(db)
    db.execute("UPDATE batches SET taken_by = NULL WHERE operator = ?", (operator,))
    done = dict(
        db.execute(
            "SELECT lane, done_of_first FROM lanes WHERE operator = ?", (operator,)
        ).fetchall()
    )
    moved = []
    for text, *values in db.execute(
        f"SELECT unit, {ROW} FROM batches WHERE operator = ? ORDER BY number", (operator,)
    ):
        row = Row._make(values)
        first = done.pop(row.lane, 0)
        (taken,) = waiting.taken([Cut(row, first, row.events - first)])
        unit = unit_from_json(text, first)
        for parcel, named in _placed(operator, row.lane, taken, unit, wanted):
            moved.append((parcel, row.deaths, named))
    storage.remove_all(operator)
    (ownership,) = db.execute(
        "SELECT coalesce(max(ownership), 0) + 1 FROM lanes WHERE operator = ?", (operator,)
    ).fetchone()
    db.execute("DELETE FROM lanes WHERE operator = ?", (operator,))
    for each in moved:
        storage.put_back(*each)
    db.execute("UPDATE lanes SET ownership = ? WHERE operator = ?", (ownership, operator))


def _placed(
    operator: str, lane: int, taken: Taken, unit: Unit | None, wanted: OperatorLanes
) -> Iterator[tuple[Parcel, Unit | None]]:
    """What is left of a batch, as parcels for the lanes that it belongs into, and their units."""
    table = from_bytes(taken.data, taken.chosen)
    for piece in pieces(new_lanes(table, lane, wanted), unit):
        data = to_bytes(table.slice(piece.first, piece.events))
        births = taken.births.cut(piece.first, piece.events)
        yield Parcel.for_lanes(operator, piece.lane_of, births, data), piece.unit
