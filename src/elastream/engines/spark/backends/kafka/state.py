"""What all connections agree on: plain values that only `commands` changes.

Every process that reads the journal from its start, or from a snapshot, has the same state after
the same record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts, LaneState
from elastream.engines.spark.backends.members import Attendance, MemberName
from elastream.engines.spark.backends.parcels import Unit


class Blob(NamedTuple):
    """Where bytes are kept: one record of a topic."""

    topic: str
    partition: int
    offset: int


@dataclass(slots=True)
class Entry:
    """Events of one lane that wait together: some rows of a stored parcel."""

    number: int
    """Its place in the order of everything that ever waited."""
    blob: Blob
    events: int
    """How many are left."""
    first: int = 0
    """How many of them are done."""
    lane_in_parcel: int | None = None
    """They are the rows of this lane in a parcel for several; all rows unless given."""
    born: float | None = None
    """When they arrived, unless the parcel says so itself."""
    deaths: int = 0
    taken_by: str | None = None
    """The process that works on them, if they come from the shared lane."""
    unit: Unit | None = None
    """The name of those that were taken of it, for functions that ask."""

    def name(self, name: str, events: int) -> Unit:
        """Take this many events as a unit, or those that were taken before; count the attempt."""
        unit = self.named or Unit(name, self.first, events, 0)
        self.unit = unit._replace(attempt=unit.attempt + 1)
        return self.unit

    @property
    def named(self) -> Unit | None:
        """The unit that the next events are, if they were taken before."""
        return self.unit if self.unit and self.unit.first == self.first else None


@dataclass(slots=True)
class Lane:
    """A queue, and who may take from it."""

    owner: int | None = None
    ownership: int = 0
    """Grows whenever it changes hands."""
    arrived: int = 0
    waiting: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)
    """By number, which is their order."""

    def give(self, owner: int | None) -> int:
        """Let it change hands; the new number of its ownership."""
        self.owner = owner
        self.ownership += 1
        return self.ownership

    def add(self, entry: Entry) -> None:
        """Put events at the end."""
        self.entries[entry.number] = entry
        self.arrived += entry.events
        self.waiting += entry.events

    def remove(self, number: int, events: int) -> None:
        """Take events out."""
        entry = self.entries[number]
        entry.events -= events
        entry.first += events
        entry.taken_by = None
        self.waiting -= events
        if not entry.events:
            del self.entries[number]


@dataclass(slots=True)
class Member:
    """Who acts for a member."""

    process: str
    generation: int
    heartbeat: int = 0
    busy_for: float = 0.0
    sequence: int = 0
    """The number of its newest commit: one that comes again is not done again."""

    @property
    def attendance(self) -> Attendance:
        """As the board shows it."""
        return Attendance(self.process, self.generation, self.heartbeat, self.busy_for)


@dataclass(slots=True)
class Role:
    """Something that a worker of a generation can be."""

    name: MemberName
    worker: int | None = None
    ready: bool = False


@dataclass(slots=True)
class Letter:
    """A dead letter, but for its events."""

    operator: str
    events: int
    error: str
    lane: int
    time: float
    blob: Blob


@dataclass(slots=True)
class RunningCounts:
    """What a member has counted since the state began."""

    numbers: list[float] = field(default_factory=lambda: [0, 0, 0, 0.0, 0.0, 0.0, 0, 0, 0.0])
    """Processed, emitted, dropped, busy, cpu, those while more waited, units and their squares."""
    sent: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    latency: Counter[int] = field(default_factory=Counter)

    def add(self, told: dict[str, Any]) -> None:
        """Add what `counts_to_json` made of the counts of a commit."""
        for place, number in enumerate(told["numbers"]):
            self.numbers[place] += number
        self.sent.update(told.get("sent", {}))
        self.lost.update(told.get("lost", {}))
        for bin_, events in told.get("latency", ()):
            self.latency[bin_] += events

    @property
    def counts(self) -> Counts:
        """As the ledger shows it."""
        processed, emitted, dropped, busy, cpu, saturated, saturated_events, *timed = self.numbers
        return Counts(
            int(processed),
            int(emitted),
            int(dropped),
            busy,
            cpu,
            dict(self.sent),
            dict(self.lost),
            LatencyHistogram(self.latency),
            saturated,
            int(saturated_events),
            int(timed[0]),
            timed[1],
        )


@dataclass(slots=True)
class Driver:
    """Who owns the state: the only driver that acts on it."""

    process: str
    who: str
    beat: int = 0


@dataclass
class State:
    """Everything but the events."""

    pipeline: str | None = None
    layout: dict[str, OperatorLanes] = field(default_factory=dict)
    lanes: dict[str, dict[int, Lane]] = field(default_factory=dict)
    members: dict[MemberName, Member] = field(default_factory=dict)
    failures: dict[int, dict[MemberName, str]] = field(default_factory=dict)
    """By generation: why its members cannot work."""
    plan: str | None = None
    plan_version: int = 0
    generation: int = 0
    started: int = 0
    roles: dict[int, list[Role]] = field(default_factory=dict)
    feedback: dict[tuple[MemberName | None, MemberName, str], tuple[int, str]] = field(
        default_factory=dict
    )
    counted: dict[MemberName, RunningCounts] = field(default_factory=dict)
    keeps_counts: bool = True
    """Whether commits are counted. Members skip that: they read every commit, and never ask."""
    letters: dict[int, Letter] = field(default_factory=dict)
    staged: dict[str, dict[str, list[tuple[int, Blob]]]] = field(default_factory=dict)
    admitted: dict[str, int] = field(default_factory=dict)
    consumed: dict[str, int] = field(default_factory=dict)
    """By operator: up to which number a query has consumed its output."""
    trimmed: dict[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition: records below this offset may be deleted."""
    stored: dict[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition: the offset after the last record that counts."""
    driver: Driver | None = None
    numbers: int = 0
    arrivals: list[tuple[str, int]] = field(default_factory=list)
    """What the last command has put into lanes: for those who wait. Not kept."""
    news: list[str | None] = field(default_factory=list)
    """The operators whose members should look up; None for everybody. Not kept."""

    def number(self) -> int:
        """The next one."""
        self.numbers += 1
        return self.numbers

    def lane(self, operator: str, lane: int) -> Lane:
        """A lane; it is made if need be."""
        lanes = self.lanes.setdefault(operator, {})
        if lane not in lanes:
            lanes[lane] = Lane()
        return lanes[lane]

    def put(self, operator: str, lane: int, entry: Entry) -> None:
        """Put events at the end of a lane."""
        self.lane(operator, lane).add(entry)
        self.arrivals.append((operator, lane))

    def keep(self, blob: Blob) -> Blob:
        """Note that a record counts."""
        key = blob.topic, blob.partition
        self.stored[key] = max(blob.offset + 1, self.stored.get(key, 0))
        return blob

    def counts_of(self, name: MemberName) -> RunningCounts:
        """What a member has counted."""
        if name not in self.counted:
            self.counted[name] = RunningCounts()
        return self.counted[name]

    def fitting(self, operator: str, lane: int) -> int:
        """The lane itself, or where its events go if the operator does not have it any more."""
        layout = self.layout.get(operator)
        return lane if layout is None else layout.fitting(lane)

    def lane_states(self) -> dict[str, dict[int, LaneState]]:
        """All lanes at a glance."""
        return {
            operator: {
                number: LaneState(lane.arrived, lane.waiting, lane.owner)
                for number, lane in lanes.items()
            }
            for operator, lanes in self.lanes.items()
        }

    def unneeded(self) -> dict[tuple[str, int], int]:
        """By topic and partition: the offset below which nobody will read anything."""
        below = dict(self.stored)
        for topic, partition, offset in self._needed():
            below[topic, partition] = min(offset, below.get((topic, partition), offset))
        return {key: at for key, at in below.items() if at > self.trimmed.get(key, 0)}

    def _needed(self) -> Iterator[Blob]:
        for lanes in self.lanes.values():
            for lane in lanes.values():
                for entry in lane.entries.values():
                    yield entry.blob
        for letter in self.letters.values():
            yield letter.blob
        for by_name in self.staged.values():
            for staged in by_name.values():
                for _, blob in staged:
                    yield blob
