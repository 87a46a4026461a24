"""The tables that events wait in; who changes them does so in a transaction."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elastream.engines.spark.backends.base import Parcel, Place, Taken
from elastream.engines.spark.backends.encoding import requests_from_json, requests_to_json
from elastream.engines.spark.births import Births

LaneOf = NDArray[np.uint16]
SLACK = 1.5
"""A stored batch is cut when it is this many times as large as what was asked for."""


class Row(NamedTuple):
    """Events of one lane that wait together."""

    number: int
    lane: int
    events: int
    first: int
    births: bytes | None
    data: bytes | None
    parcel: int | None
    requests: str | None


class Stored(NamedTuple):
    """A parcel for several lanes."""

    births: Births
    data: bytes
    lane_of: LaneOf


class Storage:
    """Batches in lanes, and parcels that several lanes share."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, parcels: Iterable[Parcel]) -> set[tuple[str, int | None]]:
        """Put parcels at the ends of their lanes.

        Returns:
            The operators and the replicas that have hold of those lanes; None where nobody has.
        """
        arrived: Counter[tuple[str, int]] = Counter()
        for parcel in parcels:
            if parcel.lane_of is None:
                self._db.execute(
                    "INSERT INTO batches (operator, lane, events, births, data, requests) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        parcel.operator,
                        parcel.lane,
                        parcel.events,
                        parcel.births.to_bytes(),
                        parcel.data,
                        requests_to_json(parcel.requests),
                    ),
                )
                arrived[parcel.operator, parcel.lane] += parcel.events
            else:
                for lane, events in self._add_for_several(parcel, parcel.lane_of):
                    arrived[parcel.operator, lane] += events
        return {
            (operator, self._count(operator, lane, n)) for (operator, lane), n in arrived.items()
        }

    def _add_for_several(self, parcel: Parcel, lane_of: LaneOf) -> list[tuple[int, int]]:
        lanes, events = np.unique(lane_of, return_counts=True)
        each = list(zip(lanes.tolist(), events.tolist(), strict=True))
        number = self._db.execute(
            "INSERT INTO parcels (lanes_left, births, data, lane_of) VALUES (?, ?, ?, ?)",
            (len(each), parcel.births.to_bytes(), parcel.data, lane_of.tobytes()),
        ).lastrowid
        self._db.executemany(
            "INSERT INTO batches (operator, lane, events, parcel) VALUES (?, ?, ?, ?)",
            [(parcel.operator, lane, count, number) for lane, count in each],
        )
        return each

    def _count(self, operator: str, lane: int, events: int) -> int | None:
        """Add to what has arrived in a lane; returns who has hold of it."""
        row = self._db.execute(
            "UPDATE lanes SET arrived = arrived + ? WHERE operator = ? AND lane = ? "
            "RETURNING replica",
            (events, operator, lane),
        ).fetchone()
        if row is None:
            self._db.execute(
                "INSERT INTO lanes VALUES (?, ?, NULL, 0, ?, 0)", (operator, lane, events)
            )
            return None
        owner: int | None = row[0]
        return owner

    def take(self, operator: str, lanes: Sequence[int], most: int) -> tuple[list[Taken], bool]:
        """The first events of these lanes, oldest first, and whether there are more."""
        rows = merge(*(self.rows(operator, lane) for lane in lanes)) if lanes else iter(())
        chosen: list[tuple[Row, int]] = []
        events, more = 0, False
        for row in rows:
            if chosen and events + row.events > most:
                more = True
                break
            count = _part(row.events, most) if not chosen else row.events
            chosen.append((row, count))
            events += count
            if count < row.events:
                more = True
                break
        return list(self._taken(chosen)), more

    def rows(self, operator: str, lane: int) -> Iterator[Row]:
        """What waits in a lane and nobody has taken, in its order."""
        found = self._db.execute(
            "SELECT number, lane, events, first, births, data, parcel, requests FROM batches "
            "WHERE operator = ? AND lane = ? AND taken_by IS NULL ORDER BY number",
            (operator, lane),
        )
        return map(Row._make, found)

    def _taken(self, chosen: Sequence[tuple[Row, int]]) -> Iterator[Taken]:
        """One for every batch; the lanes of one parcel together, at the place of the first."""
        groups: dict[int, list[tuple[Row, int]]] = {}
        for row, count in chosen:
            groups.setdefault(-row.number if row.parcel is None else row.parcel, []).append(
                (row, count)
            )
        for rows in groups.values():
            row, count = rows[0]
            if row.parcel is None:
                yield _of_one_lane(row, count)
            else:
                yield _of_several_lanes(rows, self.parcel(row.parcel))

    def parcel(self, number: int) -> Stored:
        """A parcel that several lanes share."""
        births, data, lane_of = self._db.execute(
            "SELECT births, data, lane_of FROM parcels WHERE number = ?", (number,)
        ).fetchone()
        return Stored(Births.from_bytes(births), data, np.frombuffer(lane_of, dtype=np.uint16))

    def remove(self, places: Iterable[Place]) -> None:
        """Take events out of their lanes."""
        for place in places:
            if not place.whole:
                self._db.execute(
                    "UPDATE batches SET events = events - ?, first = first + ?, taken_by = NULL "
                    "WHERE number = ?",
                    (place.events, place.events, place.number),
                )
                continue
            (parcel,) = self._db.execute(
                "DELETE FROM batches WHERE number = ? RETURNING parcel", (place.number,)
            ).fetchone()
            if parcel is not None:
                self.leave_parcel(parcel)

    def leave_parcel(self, number: int) -> None:
        """One lane needs a parcel no longer; with the last one it goes."""
        (left,) = self._db.execute(
            "UPDATE parcels SET lanes_left = lanes_left - 1 WHERE number = ? RETURNING lanes_left",
            (number,),
        ).fetchone()
        if not left:
            self._db.execute("DELETE FROM parcels WHERE number = ?", (number,))

    def lengths(self, operator: str) -> Mapping[int, int]:
        """How many events wait in each lane."""
        rows = self._db.execute(
            "SELECT lane, arrived - consumed FROM lanes WHERE operator = ?", (operator,)
        )
        return dict(rows.fetchall())

    def existing_lane(self, operator: str, lane: int) -> int:
        """The lane itself, or where its events go if the operator has fewer lanes now."""
        row = self._db.execute(
            "SELECT lanes, shared FROM layout WHERE operator = ?", (operator,)
        ).fetchone()
        return lane if row is None else fitting_lane(lane, row[0], bool(row[1]))


def fitting_lane(lane: int, lanes: int, shared: bool) -> int:
    """Where the events of a lane belong in a layout that may not have it."""
    return -1 if shared else lane % lanes


def _part(events: int, most: int) -> int:
    """As much of a batch as should be taken at once: all, or one of several equal parts."""
    if events <= SLACK * most:
        return events
    parts = -(-events // most)
    return -(-events // parts)


def _of_one_lane(row: Row, count: int) -> Taken:
    assert row.data is not None
    assert row.births is not None
    births = Births.from_bytes(row.births)
    whole = row.first == 0 and count == row.events
    return Taken(
        row.data,
        count,
        births if whole else births.cut(row.first, count),
        (Place(row.number, row.lane, count, count == row.events),),
        None if whole else np.arange(row.first, row.first + count),
        requests_from_json(row.requests),
    )


def _of_several_lanes(rows: Sequence[tuple[Row, int]], stored: Stored) -> Taken:
    chosen = np.concatenate(
        [
            np.flatnonzero(stored.lane_of == row.lane)[row.first : row.first + count]
            for row, count in rows
        ]
    )
    places = tuple(Place(row.number, row.lane, count, count == row.events) for row, count in rows)
    if len(chosen) == len(stored.lane_of):
        return Taken(stored.data, len(chosen), stored.births, places)
    chosen.sort()
    return Taken(stored.data, len(chosen), stored.births.chosen(chosen), places, chosen)
