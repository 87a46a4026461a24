"""What waits in lanes, and what of it comes next.

Batches are cut into units of work only when they are taken: what is stored stays as it is. Numbers
are given out again, so all that is found and read belongs into one transaction.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elastream.engines.spark.backends.encoding import (
    requests_from_json,
    unit_from_json,
    unit_to_json,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Place, Taken, Unit
from elastream.engines.spark.births import Births

SLACK = 1.5
"""A stored batch is cut when it is this many times as large as what was asked for."""
MOST_LANES = 1 << 30
ROW = "number, lane, events, births, data, parcel, requests, deaths"
"""The columns of a `Row`."""
_DATA = "coalesce(data, (SELECT parcels.data FROM parcels WHERE parcels.number = parcel))"
IN_LANE = (
    "(number = (SELECT head FROM lanes WHERE operator = ?1 AND lane = ?2) "
    "OR (operator = ?1 AND lane = ?2 AND taken_by IS NULL AND follows))"
)
"""Of batches: those in one lane that nobody has taken."""
HEADS = (
    "SELECT number, batches.lane, events, births, "
    f"CASE WHEN births IS NOT NULL AND events - done_of_first <= ?5 THEN {_DATA} END, "
    "parcel, requests, deaths, "
    "done_of_first, arrived - consumed FROM lanes JOIN batches ON number = head "
    "WHERE lanes.operator = ?1 AND replica = ?2 AND lanes.lane >= ?3 AND lanes.lane < ?4 "
    "ORDER BY lanes.lane LIMIT ?6"
)
"""The first row of every lane of a member. Rows are large: what must be cut comes without data."""
ROWS = (
    "SELECT number, lane, events, births, "
    f"CASE WHEN births IS NOT NULL THEN {_DATA} END, parcel, requests, deaths FROM batches "
    "WHERE operator = ? AND lane = ? AND taken_by IS NULL AND number > ? AND follows "
    "ORDER BY number"
)
"""Those of one lane, after a number."""


class Row(NamedTuple):
    """Events of one lane that wait together."""

    number: int
    lane: int
    events: int
    births: bytes | None
    data: bytes | None
    parcel: int | None
    requests: str | None
    deaths: int


Waiting = tuple[Row, int, int]
"""A row, how many of its events are done, and how many wait behind it in its lane, if known."""


class Cut(NamedTuple):
    """Some events of a row."""

    row: Row
    first: int
    events: int

    @property
    def place(self) -> Place:
        """Where they are."""
        row = self.row
        whole = self.first + self.events == row.events
        return Place(row.number, row.lane, self.events, whole, row.parcel)


class Stored(NamedTuple):
    """Events for several lanes."""

    births: Births
    data: bytes
    lane_of: NDArray[np.uint16]


class WaitingEvents:
    """The batches in lanes, for those who take from them; only names of units are written."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def all_in_lanes(
        self, member: MemberName, lanes: Container[int], most: int
    ) -> list[Taken] | None:
        """What waits in a member's lanes, if that is at most one batch, which it usually is.

        One statement sees one moment without a transaction. None if there is more to look at.
        """
        rows = self._db.execute(HEADS, (*member, 0, MOST_LANES, SLACK * most, 2)).fetchall()
        if not rows:
            return []
        number, lane, events, births, data, parcel, requests, deaths, done, waiting = rows[0]
        whole = waiting == events and not done and data is not None
        if len(rows) > 1 or not whole or requests or lane not in lanes:
            return None
        places = (Place(number, lane, events, True, parcel),)
        return [Taken(data, events, Births(None, births), places, deaths=deaths)]

    def take(self, waiting: Iterable[Waiting], most: int) -> tuple[list[Taken], bool]:
        """The first events of what waits, and whether there are more.

        Rows are large: the next one is not read when it probably will not fit.

        Args:
            waiting: What there is, lane by lane.
            most: How many events, about.
        """
        chosen: list[Cut] = []
        room, more = most, False
        for row, done, behind in waiting:
            left = row.events - done
            more = bool(chosen) and left > room
            if more:
                break
            cuts = left > SLACK * most and not chosen and row.lane != SHARED_LANE
            count = _part(left, most) if cuts else left
            chosen.append(Cut(row, done, count))
            room -= count
            more = count < left or (behind > 0 and room < left)
            if more:
                break
        if len(chosen) == 1 and chosen[0].row.births is not None:
            return [self._of_one_lane(chosen[0])], more
        return list(self.taken(chosen)), more

    def take_units(self, waiting: Iterable[Waiting], most: int) -> tuple[list[Taken], bool]:
        """The same as units with names: what was taken before is cut as it was, and counted."""
        units: list[tuple[Row, Unit]] = []
        more = False
        for row, done, _ in waiting:
            left = row.events - done
            room = most - sum(unit.events for _, unit in units)
            if more or (units and left > room):
                more = True
                break
            unit = self._unit(row.number, done)
            if unit is None:
                cuts = not units and row.lane != SHARED_LANE
                unit = Unit(uuid.uuid4().hex, done, _part(left, most) if cuts else left, 0)
            units.append((row, unit._replace(attempt=unit.attempt + 1)))
            more = unit.events < left
        self._db.executemany(
            "UPDATE batches SET unit = ? WHERE number = ?",
            [(unit_to_json(unit), row.number) for row, unit in units],
        )
        return [
            next(self.taken([Cut(row, unit.first, unit.events)]))._replace(unit=unit)
            for row, unit in units
        ], more

    def _unit(self, number: int, done: int) -> Unit | None:
        (text,) = self._db.execute(
            "SELECT unit FROM batches WHERE number = ?", (number,)
        ).fetchone()
        return unit_from_json(text, done)

    def in_lanes(
        self, member: MemberName, lanes: Container[int], first: int, most: int
    ) -> Generator[Waiting, None, None]:
        """What waits in a member's lanes, lane by lane; close it, or what it reads stays open.

        Args:
            member: Who has hold of the lanes.
            lanes: Those that count.
            first: The lane to begin with; those before it come last.
            most: How many events are wanted, about; what must be cut comes without data.
        """
        for begin, end in ((first, MOST_LANES), (0, first)) if first else ((0, MOST_LANES),):
            for *values, done, length in self._db.execute(
                HEADS, (*member, begin, end, SLACK * most, MOST_LANES)
            ):
                row = Row._make(values)
                if row.lane not in lanes:
                    continue
                behind = length - row.events + done
                yield row, done, behind
                if behind:
                    yield from self._rows(member[0], row.lane, row.number, behind)

    def for_all(self, operator: str) -> Generator[Waiting, None, None]:
        """What waits in the lane that all replicas share, and nobody has taken."""
        return self._rows(operator, SHARED_LANE, 0, 0)

    def _rows(
        self, operator: str, lane: int, after: int, events: int
    ) -> Generator[Waiting, None, None]:
        """The rows of a lane after a number, which hold this many events, if that is known."""
        for values in self._db.execute(ROWS, (operator, lane, after)):
            row = Row._make(values)
            events -= row.events
            yield row, 0, events

    def anything_for_all(self, operator: str) -> bool:
        """Whether anything waits there."""
        row = self._db.execute(
            "SELECT 1 FROM batches "
            "WHERE operator = ? AND lane = ? AND taken_by IS NULL AND follows LIMIT 1",
            (operator, SHARED_LANE),
        ).fetchone()
        return row is not None

    def taken(self, chosen: Sequence[Cut]) -> Iterator[Taken]:
        """One for every batch, in the order of their numbers; the lanes of one parcel together."""
        groups: dict[int, list[Cut]] = {}
        for cut in sorted(chosen, key=lambda cut: cut.row.number):
            row = cut.row
            of_several = row.births is None and row.parcel
            groups.setdefault(of_several or -row.number, []).append(cut)
        for number, cuts in groups.items():
            if cuts[0].row.births is not None:
                yield self._of_one_lane(cuts[0])
            else:
                yield _of_several_lanes(cuts, self._parcel(number))

    def _of_one_lane(self, cut: Cut) -> Taken:
        row, first, count = cut
        assert row.births is not None
        data, births = row.data, Births(None, row.births)
        if data is None:
            (data,) = self._db.execute(
                f"SELECT {_DATA} FROM batches WHERE number = ?", (row.number,)
            ).fetchone()
        requests = requests_from_json(row.requests) if row.requests else None
        if count == row.events:
            return Taken(data, count, births, (cut.place,), None, requests, row.deaths)
        chosen = np.arange(first, first + count)
        births = births.cut(first, count)
        return Taken(data, count, births, (cut.place,), chosen, requests, row.deaths)

    def _parcel(self, number: int) -> Stored:
        births, data, lane_of = self._db.execute(
            "SELECT births, data, lane_of FROM parcels WHERE number = ?", (number,)
        ).fetchone()
        return Stored(Births.from_bytes(births), data, np.frombuffer(lane_of, dtype=np.uint16))

    def begun(self, operator: str) -> bool:
        """Whether units with names wait: they are the first of their lanes."""
        lanes = self._db.execute(
            "SELECT lane, done_of_first FROM lanes WHERE operator = ?", (operator,)
        ).fetchall()
        return any(self._begun(operator, lane, done) for lane, done in lanes)

    def _begun(self, operator: str, lane: int, done: int) -> bool:
        query = f"SELECT unit FROM batches WHERE {IN_LANE} ORDER BY number"
        with closing(self._db.execute(query, (operator, lane))) as units:
            for (unit,) in units:
                if unit is None or unit_from_json(unit, done):
                    return unit is not None
                done = 0
        return False

    def lengths(self, operator: str) -> Mapping[int, int]:
        """How many events wait in each lane."""
        rows = self._db.execute(
            "SELECT lane, arrived - consumed FROM lanes WHERE operator = ?", (operator,)
        )
        return dict(rows.fetchall())


def _part(events: int, most: int) -> int:
    """As much of a batch as should be taken at once: all, or one of several equal parts."""
    if events <= SLACK * most:
        return events
    parts = -(-events // most)
    return -(-events // parts)


def _of_several_lanes(cuts: Sequence[Cut], stored: Stored) -> Taken:
    rows = [
        np.flatnonzero(stored.lane_of == row.lane)[first : first + count]
        for row, first, count in cuts
    ]
    chosen = np.sort(np.concatenate(rows))
    places = tuple(cut.place for cut in cuts)
    deaths = max(cut.row.deaths for cut in cuts)
    if len(chosen) == len(stored.lane_of):
        return Taken(stored.data, len(chosen), stored.births, places, deaths=deaths)
    births = stored.births.chosen(chosen)
    return Taken(stored.data, len(chosen), births, places, chosen, deaths=deaths)
