"""The tables that events wait in; who changes them does so in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from elastream.engines.spark.backends.encoding import requests_to_json, unit_to_json
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.outbox import is_output
from elastream.engines.spark.backends.parcels import Parcel, Place, Taken, Unit
from elastream.engines.spark.backends.sqlite.waiting import IN_LANE

LARGE = 1 << 15
"""Bytes. A batch that is larger is stored by itself, so that it can be passed on without a copy."""
SUSPECTS = 8
"""How many batches at the head of a lane a process that died may have taken at once."""
_INSERT = (
    "INSERT INTO batches "
    "(operator, lane, events, births, data, parcel, requests, deaths, unit, follows) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, coalesce("
    "(SELECT head IS NOT NULL FROM lanes WHERE operator = ?1 AND lane = ?2), 0) "
    f"OR ?2 = {SHARED_LANE})"
)
EVERYBODY = -1
"""Who has hold of a lane that all replicas share."""
_There = dict[int, int | None]
"""Which parcel has the data of a batch, by the identity of the data: what is passed on as it came
is the same object."""


class Storage:
    """Batches in lanes, and what several of them share."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put(
        self, parcels: Sequence[Parcel], instead_of: Sequence[Taken] = ()
    ) -> set[tuple[str, int | None]]:
        """Put parcels at the ends of their lanes.

        Args:
            parcels: What they are.
            instead_of: What is done, and goes. Where large data are passed on as they came, they
                are not written again.

        Returns:
            The operators and the replicas that have hold of those lanes; None where nobody has.
        """
        there = {id(each.data): each.places[0].parcel for each in instead_of}
        owners: set[tuple[str, int | None]] = set()
        for parcel in parcels:
            for owner in self._stored(parcel, there):
                owners.add((parcel.operator, owner))
        for taken in instead_of:
            self._remove(taken.places)
        return owners

    def put_back(self, parcel: Parcel, deaths: int, unit: Unit | None) -> None:
        """Put events that have waited before at the ends of their lanes, as they were known."""
        self._stored(parcel, {}, deaths, unit)

    def _stored(
        self, parcel: Parcel, there: _There, deaths: int = 0, unit: Unit | None = None
    ) -> list[int | None]:
        """Write a parcel down; returns who has hold of the lanes that it is for."""
        if is_output(parcel.operator):
            self._db.execute(
                "INSERT INTO output_batches (operator, events, data) VALUES (?, ?, ?)",
                (parcel.operator, parcel.events, parcel.data),
            )
            return [self._count(parcel.operator, 0, parcel.events, None)]
        if parcel.lane_of is not None:
            return self._stored_for_several(parcel, parcel.lane_of, deaths)
        stored_in = self._parcel_with(parcel.data, there)
        number = self._db.execute(
            _INSERT,
            (
                parcel.operator,
                parcel.lane,
                parcel.events,
                parcel.births.to_bytes(),
                parcel.data if stored_in is None else None,
                stored_in,
                requests_to_json(parcel.requests) if parcel.requests else None,
                deaths,
                unit_to_json(unit) if unit else None,
            ),
        ).lastrowid
        return [self._count(parcel.operator, parcel.lane, parcel.events, number)]

    def _parcel_with(self, data: bytes, there: _There) -> int | None:
        """The parcel that has the data; None if they belong in the row itself."""
        number = there.get(id(data))
        if number is None and len(data) > LARGE:
            number = self._db.execute("INSERT INTO parcels (data) VALUES (?)", (data,)).lastrowid
            there[id(data)] = number
        return number

    def _stored_for_several(
        self, parcel: Parcel, lane_of: NDArray[np.uint16], deaths: int
    ) -> list[int | None]:
        lanes, events = np.unique(lane_of, return_counts=True)
        stored_in = self._db.execute(
            "INSERT INTO parcels (births, data, lane_of) VALUES (?, ?, ?)",
            (parcel.births.to_bytes(), parcel.data, lane_of.tobytes()),
        ).lastrowid
        owners = []
        for lane, count in zip(lanes.tolist(), events.tolist(), strict=True):
            batch = parcel.operator, lane, count, None, None, stored_in, None, deaths, None
            number = self._db.execute(_INSERT, batch).lastrowid
            owners.append(self._count(parcel.operator, lane, count, number))
        return owners

    def _count(self, operator: str, lane: int, events: int, number: int | None) -> int | None:
        """Add to what has arrived in a lane, with this batch; returns who has hold of it."""
        shared = lane == SHARED_LANE
        head = None if shared else number
        row = self._db.execute(
            "UPDATE lanes SET arrived = arrived + ?, head = coalesce(head, ?) "
            "WHERE operator = ? AND lane = ? RETURNING replica",
            (events, head, operator, lane),
        ).fetchone()
        if row is None:
            self._db.execute(
                "INSERT INTO lanes (operator, lane, arrived, head) VALUES (?, ?, ?, ?)",
                (operator, lane, events, head),
            )
        if shared:
            return EVERYBODY
        owner: int | None = row[0] if row else None
        return owner

    def note_death(self, member: MemberName, process: str) -> None:
        """A member's process has died: it may have been at the first events of its lanes."""
        operator, _ = member
        held = self._db.execute(
            "SELECT lane FROM lanes WHERE operator = ? AND replica = ?", member
        ).fetchall()
        for (lane,) in held:
            self._db.execute(
                "UPDATE batches SET deaths = deaths + 1 WHERE number IN "
                f"(SELECT number FROM batches WHERE {IN_LANE} ORDER BY number LIMIT ?3)",
                (operator, lane, SUSPECTS),
            )
        self._db.execute("UPDATE batches SET deaths = deaths + 1 WHERE taken_by = ?", (process,))

    def _remove(self, places: Iterable[Place]) -> None:
        parcels = set()
        for place in places:
            if place.whole:
                self._db.execute("DELETE FROM batches WHERE number = ?", (place.number,))
                if place.parcel is not None:
                    parcels.add(place.parcel)
        if parcels:
            self._remove_unless_needed(parcels)

    def remove_all(self, operator: str) -> None:
        """Remove every batch of an operator."""
        self._db.execute("UPDATE lanes SET head = NULL WHERE operator = ?", (operator,))
        rows = self._db.execute(
            "DELETE FROM batches WHERE operator = ? RETURNING parcel", (operator,)
        ).fetchall()
        self._remove_unless_needed({parcel for (parcel,) in rows if parcel is not None})

    def _remove_unless_needed(self, parcels: Iterable[int]) -> None:
        """A parcel goes with the last row that needs it."""
        for number in parcels:
            self._db.execute(
                "DELETE FROM parcels WHERE number = ?1 "
                "AND NOT EXISTS (SELECT 1 FROM batches WHERE parcel = ?1)",
                (number,),
            )
