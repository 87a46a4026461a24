"""The tables that events wait in; who changes them, or takes from them, does so in a transaction.

Numbers are given out again. So what was found has to be read before anybody else can remove it.
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
    requests_to_json,
    unit_from_json,
    unit_to_json,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.outbox import is_output
from elastream.engines.spark.backends.parcels import Parcel, Place, Taken, Unit
from elastream.engines.spark.births import Births

LaneOf = NDArray[np.uint16]
SLACK = 1.5
"""A stored batch is cut when it is this many times as large as what was asked for."""
MOST_LANES = 1 << 30
LARGE = 1 << 15
"""Bytes. A batch that is larger is stored by itself, so that it can be passed on without a copy."""
SUSPECTS = 8
"""How many batches at the head of a lane a process that died may have taken at once."""
ROW = "number, lane, events, births, data, parcel, requests, deaths"
"""The columns of a `Row`."""
_DATA = "coalesce(data, (SELECT parcels.data FROM parcels WHERE parcels.number = parcel))"
HEADS = (
    "SELECT number, batches.lane, events, births, "
    f"CASE WHEN births IS NOT NULL AND events - done_of_first <= ?5 THEN {_DATA} END, "
    "parcel, requests, deaths, "
    "done_of_first, arrived - consumed FROM lanes JOIN batches ON number = "
    "(SELECT min(number) FROM batches AS waiting WHERE waiting.operator = lanes.operator "
    "AND waiting.lane = lanes.lane AND waiting.taken_by IS NULL) "
    "WHERE lanes.operator = ?1 AND replica = ?2 AND lanes.lane >= ?3 AND lanes.lane < ?4 "
    "AND arrived > consumed ORDER BY lanes.lane"
)
"""The first row of every lane of a member. Rows are large: what must be cut comes without data."""
ROWS = (
    "SELECT number, lane, events, births, "
    f"CASE WHEN births IS NOT NULL THEN {_DATA} END, parcel, requests, deaths FROM batches "
    "WHERE operator = ? AND lane = ? AND taken_by IS NULL AND number > ? ORDER BY number"
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
    lane_of: LaneOf


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
        arrived: dict[tuple[str, int], int] = {}
        for parcel in parcels:
            for lane, events in self._stored(parcel, there):
                place = parcel.operator, lane
                arrived[place] = arrived.get(place, 0) + events
        for taken in instead_of:
            self._remove(taken.places)
        owners: set[tuple[str, int | None]] = set()
        for (operator, lane), events in arrived.items():
            owners.add((operator, self._count(operator, lane, events)))
        return owners

    def put_back(self, parcel: Parcel, deaths: int, unit: Unit | None) -> None:
        """Put events that have waited before at the ends of their lanes, as they were known."""
        for lane, events in self._stored(parcel, {}, deaths, unit):
            self._count(parcel.operator, lane, events)

    def _stored(
        self, parcel: Parcel, there: _There, deaths: int = 0, unit: Unit | None = None
    ) -> list[tuple[int, int]]:
        """Write a parcel down; how many events of it are for which lane."""
        if is_output(parcel.operator):
            self._db.execute(
                "INSERT INTO output_batches (operator, events, data) VALUES (?, ?, ?)",
                (parcel.operator, parcel.events, parcel.data),
            )
            return [(0, parcel.events)]
        if parcel.lane_of is not None:
            return self._stored_for_several(parcel, parcel.lane_of, deaths)
        stored_in = self._parcel_with(parcel.data, there)
        self._db.execute(
            "INSERT INTO batches "
            "(operator, lane, events, births, data, parcel, requests, deaths, unit) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        )
        return [(parcel.lane, parcel.events)]

    def _parcel_with(self, data: bytes, there: _There) -> int | None:
        """The parcel that has the data; None if they belong in the row itself."""
        number = there.get(id(data))
        if number is None and len(data) > LARGE:
            number = self._db.execute("INSERT INTO parcels (data) VALUES (?)", (data,)).lastrowid
            there[id(data)] = number
        return number

    def _stored_for_several(
        self, parcel: Parcel, lane_of: LaneOf, deaths: int
    ) -> list[tuple[int, int]]:
        lanes, events = np.unique(lane_of, return_counts=True)
        each = list(zip(lanes.tolist(), events.tolist(), strict=True))
        number = self._db.execute(
            "INSERT INTO parcels (births, data, lane_of) VALUES (?, ?, ?)",
            (parcel.births.to_bytes(), parcel.data, lane_of.tobytes()),
        ).lastrowid
        self._db.executemany(
            "INSERT INTO batches (operator, lane, events, parcel, deaths) VALUES (?, ?, ?, ?, ?)",
            [(parcel.operator, lane, count, number, deaths) for lane, count in each],
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
                "INSERT INTO lanes (operator, lane, arrived) VALUES (?, ?, ?)",
                (operator, lane, events),
            )
            return None
        owner: int | None = row[0]
        return owner

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

    def waiting(
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
                HEADS, (*member, begin, end, SLACK * most)
            ):
                row = Row._make(values)
                if row.lane not in lanes:
                    continue
                behind = length - row.events + done
                yield row, done, behind
                if behind:
                    yield from self._rows(member[0], row.lane, row.number, behind)

    def waiting_for_all(self, operator: str) -> Generator[Waiting, None, None]:
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
            "SELECT 1 FROM batches WHERE operator = ? AND lane = ? AND taken_by IS NULL LIMIT 1",
            (operator, SHARED_LANE),
        ).fetchone()
        return row is not None

    def note_death(self, member: MemberName, process: str) -> None:
        """A member's process has died: it may have been at the first events of its lanes."""
        operator, _ = member
        held = self._db.execute(
            "SELECT lane FROM lanes WHERE operator = ? AND replica = ?", member
        ).fetchall()
        for (lane,) in held:
            self._db.execute(
                "UPDATE batches SET deaths = deaths + 1 WHERE number IN (SELECT number "
                "FROM batches WHERE operator = ? AND lane = ? AND taken_by IS NULL "
                "ORDER BY number LIMIT ?)",
                (operator, lane, SUSPECTS),
            )
        self._db.execute("UPDATE batches SET deaths = deaths + 1 WHERE taken_by = ?", (process,))

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

    def _remove(self, places: Iterable[Place]) -> None:
        parcels = set()
        for place in places:
            if place.whole:
                self._db.execute("DELETE FROM batches WHERE number = ?", (place.number,))
                parcels.add(place.parcel)
        self._remove_unless_needed(parcels)

    def remove_all(self, operator: str) -> None:
        """Remove every batch of an operator."""
        rows = self._db.execute(
            "DELETE FROM batches WHERE operator = ? RETURNING parcel", (operator,)
        ).fetchall()
        self._remove_unless_needed({parcel for (parcel,) in rows})

    def _remove_unless_needed(self, parcels: Iterable[int | None]) -> None:
        """A parcel goes with the last row that needs it."""
        for number in parcels:
            if number is not None:
                self._db.execute(
                    "DELETE FROM parcels WHERE number = ?1 "
                    "AND NOT EXISTS (SELECT 1 FROM batches WHERE parcel = ?1)",
                    (number,),
                )

    def begun(self, operator: str) -> bool:
        """Whether units with names wait: they are the first of their lanes."""
        lanes = self._db.execute(
            "SELECT lane, done_of_first FROM lanes WHERE operator = ?", (operator,)
        ).fetchall()
        return any(self._begun(operator, lane, done) for lane, done in lanes)

    def _begun(self, operator: str, lane: int, done: int) -> bool:
        query = "SELECT unit FROM batches WHERE operator = ? AND lane = ? ORDER BY number"
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
