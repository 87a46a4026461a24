"""The layout of an operator's lanes, and how what waits is moved when it changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import numpy as np

from elastream.core.lanes import lanes_of_keys
from elastream.engines.spark.arrow_ipc import from_bytes, key_values, to_bytes
from elastream.engines.spark.backends.base import SHARED_LANE, OperatorLanes, Parcel
from elastream.engines.spark.backends.sqlite.database import writing
from elastream.engines.spark.backends.sqlite.storage import Row, Storage, fitting_lane
from elastream.engines.spark.births import Births


def lay_out(db: sqlite3.Connection, operator: str, wanted: OperatorLanes) -> None:
    """Make the lanes; what waits under another layout is moved, in its order."""
    row = db.execute(
        "SELECT lanes, key, shared FROM layout WHERE operator = ?", (operator,)
    ).fetchone()
    if row and OperatorLanes(row[0], row[1], bool(row[2])) == wanted:
        return
    with writing(db):
        _move(db, operator, wanted)
        db.execute(
            "INSERT OR REPLACE INTO layout VALUES (?, ?, ?, ?)",
            (operator, wanted.lanes, wanted.key, wanted.shared),
        )
        lanes = [SHARED_LANE] if wanted.shared else range(wanted.lanes)
        db.executemany(
            "INSERT OR IGNORE INTO lanes VALUES (?, ?, NULL, 0, 0, 0)",
            [(operator, lane) for lane in lanes],
        )


def _move(db: sqlite3.Connection, operator: str, wanted: OperatorLanes) -> None:
    """Take everything out, and put it back where it belongs now."""
    storage = Storage(db)
    db.execute("UPDATE batches SET taken_by = NULL WHERE operator = ?", (operator,))
    waiting = [
        Row._make(row)
        for row in db.execute(
            "SELECT number, lane, events, first, births, data, parcel, requests FROM batches "
            "WHERE operator = ? ORDER BY number",
            (operator,),
        )
    ]
    parcels = [parcel for row in waiting for parcel in _placed(storage, operator, row, wanted)]
    db.execute("DELETE FROM batches WHERE operator = ?", (operator,))
    for row in waiting:
        if row.parcel is not None:
            storage.leave_parcel(row.parcel)
    (ownership,) = db.execute(
        "SELECT coalesce(max(ownership), 0) + 1 FROM lanes WHERE operator = ?", (operator,)
    ).fetchone()
    db.execute("DELETE FROM lanes WHERE operator = ?", (operator,))
    storage.add(parcels)
    db.execute("UPDATE lanes SET ownership = ? WHERE operator = ?", (ownership, operator))


def _placed(storage: Storage, operator: str, row: Row, wanted: OperatorLanes) -> Iterator[Parcel]:
    """What is left of a row, as parcels for the lanes that it belongs into."""
    if row.parcel is None:
        assert row.data is not None
        assert row.births is not None
        table = from_bytes(row.data).slice(row.first, row.events)
        births = Births.from_bytes(row.births).cut(row.first, row.events)
    else:
        stored = storage.parcel(row.parcel)
        places = np.flatnonzero(stored.lane_of == row.lane)[row.first :]
        table, births = from_bytes(stored.data).take(places), stored.births.chosen(places)
    if wanted.key is None or wanted.key not in table.column_names:
        lane = fitting_lane(row.lane, wanted.lanes, wanted.shared)
        yield Parcel(operator, lane, row.events, births, to_bytes(table))
        return
    lane_of = lanes_of_keys(key_values(table.column(wanted.key)), wanted.lanes)
    yield Parcel.for_lanes(operator, lane_of, births, to_bytes(table))
