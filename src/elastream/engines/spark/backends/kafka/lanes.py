"""The lanes as one member sees them."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any

from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.encoding import counts_to_json
from elastream.engines.spark.backends.kafka import clients
from elastream.engines.spark.backends.kafka.blobs import Blobs
from elastream.engines.spark.backends.kafka.commands.lanes import share, takeable
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.kafka.parcels import parts_of, taken_from, to_record
from elastream.engines.spark.backends.kafka.state import (
    Blob,
    Entry,
    Lane,
    State,
)
from elastream.engines.spark.backends.kafka.topics import (
    BLOB_PARTITIONS,
    BLOBS,
    DEAD_LETTERS,
    topic_of,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE, Lanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import MemberName, SupersededError, this_process
from elastream.engines.spark.backends.parcels import Parcel, Taken, Unit
from elastream.engines.spark.births import Births

MOST_ENTRIES = 2_000
"""How many batches are looked at for one unit of work."""
SHORTEST_SECONDS = 0.001
"""The client counts in milliseconds: to wait for less would be to ask it again and again."""
_NOTHING = (object(),) * 4


class KafkaLanes(Lanes):
    """One end of the lanes, for one process or thread."""

    def __init__(self, place: clients.Place) -> None:
        self.journal = Journal(place, self._notice, keeps_counts=False)
        self.blobs = Blobs(place)
        self._place = place
        self._name: MemberName | None = None
        self._process = this_process()
        self._held: dict[int, int] = {}
        """The ownership numbers of the lanes that are held."""
        self._sequence = 0
        self._unsure: tuple[Any, ...] = _NOTHING
        """The commit that got no answer: it is sent again under its number."""
        self.more = self._work = self._news = False
        self._blob_of: dict[int, Blob] = {}
        """Where the events that were taken last are stored, by number."""
        self._working: set[int] = set()
        """The numbers of what was taken from the shared lane and not committed."""

    def join(self, name: MemberName, generation: int) -> None:
        """Append the request; that of an earlier generation has no effect."""
        self._name = None
        held = self.journal.append(
            "join",
            name=name,
            process=self._process,
            generation=generation,
            sequence=self._sequence,
        )
        if held is None:
            raise SupersededError
        self._name, self._held, self._unsure = name, held, _NOTHING
        self._working.clear()
        self.more = self._work = self._news = False

    def joined(self) -> bool:
        """Read to the end, and look."""
        self.journal.sync()
        return self._acts()

    def hold(
        self, wanted: frozenset[int], by_force: frozenset[int] = frozenset()
    ) -> frozenset[int]:
        """Append what is wanted, unless it is held already."""
        operator, _ = self._member
        lanes = self.journal.state.lanes.get(operator, {})
        if self._held.keys() == wanted and all(
            lane in lanes and lanes[lane].ownership == owned for lane, owned in self._held.items()
        ):
            return wanted
        before = self._held
        held = self.journal.append(
            "hold",
            name=self._member,
            process=self._process,
            wanted=sorted(wanted),
            held={str(lane): owned for lane, owned in before.items()},
            by_force=sorted(by_force),
        )
        self._held = held or {}
        self.more = self.more or bool(self._held.keys() - before.keys())
        if before.keys() - self._held.keys():
            self.blobs.follow_only(topic_of(self._place, operator), frozenset(self._held))
        return frozenset(self._held)

    def take(self, most: int, shared: bool = False, named: bool = False) -> list[Taken]:
        """Look at what is known; read to the end only if that is nothing."""
        if shared:
            return self._take_shared(most, named)
        parts, self.more = self._next(most, named)
        if not parts:
            self.journal.sync()
            parts, self.more = self._next(most, named)
        return self._named(parts) if named and parts else self._taken(parts)

    def _named(self, parts: Sequence[tuple[Entry, int, int]]) -> list[Taken]:
        """Append that they are taken as units; those of lanes that were lost are left out."""
        places = [(lane, e.number, n, self._held.get(lane, -1)) for e, lane, n in parts]
        named = self.journal.append(
            "name_units",
            name=self._member,
            process=self._process,
            places=places,
            unit=uuid.uuid4().hex,
        )
        of = {entry.number: (entry, lane) for entry, lane, _ in parts}
        return self._units([(*of[number], unit) for number, unit in named])

    def _units(self, named: Sequence[tuple[Entry, int, Unit]]) -> list[Taken]:
        """One for every unit."""
        self._blob_of = {entry.number: entry.blob for entry, _, _ in named}
        stored = self.blobs.read(self._blob_of.values())
        return [
            taken_from([(entry, lane, unit.events)], stored[entry.blob])._replace(unit=unit)
            for entry, lane, unit in named
        ]

    def _take_shared(self, most: int, named: bool) -> list[Taken]:
        operator, _ = self._member
        lane = self.journal.sync().lanes.get(operator, {}).get(SHARED_LANE)
        if lane is None or not takeable(lane, self._process, self._working):
            self.more = False
            return []
        unit = {"unit": uuid.uuid4().hex} if named else {}
        parts, self.more = self.journal.append(
            "take_shared",
            name=self._member,
            process=self._process,
            most=most,
            working=sorted(self._working),
            **unit,
        )
        self._working.update(number for number, _ in parts)
        lane = self.journal.state.lane(operator, SHARED_LANE)
        # What was cleared right afterwards is not there any more.
        taken = [(lane.entries[n], SHARED_LANE, count) for n, count in parts if n in lane.entries]
        if not named:
            return self._taken(taken)
        return self._units([(e, SHARED_LANE, e.named) for e, _, _ in taken if e.named])

    def _next(self, most: int, named: bool) -> tuple[list[tuple[Entry, int, int]], bool]:
        """The first entries of the lanes that are held, oldest first; whether there are more."""
        operator, _ = self._member
        lanes = self.journal.state.lanes.get(operator, {})
        where: dict[int, int] = {}

        def waiting(number: int, lane: Lane) -> Iterator[Entry]:
            for entry in lane.entries.values():
                where[entry.number] = number
                yield entry

        ours = [
            waiting(number, lanes[number])
            for number, owned in self._held.items()
            if number in lanes and lanes[number].ownership == owned and lanes[number].waiting
        ]
        first = list(islice(merge(*ours, key=attrgetter("number")), MOST_ENTRIES))
        parts, more = share(first, most, named)
        return [(entry, where[entry.number], n) for entry, n in parts], more

    def _taken(self, parts: Sequence[tuple[Entry, int, int]]) -> list[Taken]:
        """One for every stored parcel; its lanes together, at the place of the first."""
        self._blob_of = {entry.number: entry.blob for entry, _, _ in parts}
        stored = self.blobs.read(self._blob_of.values())
        groups: dict[Blob, list[tuple[Entry, int, int]]] = {}
        for part in parts:
            groups.setdefault(part[0].blob, []).append(part)
        return [taken_from(of, stored[blob]) for blob, of in groups.items()]

    def commit(
        self,
        done: Sequence[Taken],
        results: Sequence[Parcel],
        counts: Counts,
        dead: Sequence[DeadLetter] = (),
    ) -> bool:
        """Store the results, then append what they replace: all of it counts, or nothing."""
        this = (done, results, counts, dead)
        if not all(a is b for a, b in zip(self._unsure, this, strict=True)):
            self._sequence += 1
            self._unsure = this
        places = [place for taken in done for place in taken.places]
        answer = "again"
        while answer == "again":
            answer = self.journal.append(
                "commit",
                name=self._member,
                process=self._process,
                sequence=self._sequence,
                places=[(p.lane, p.number, p.events, self._held.get(p.lane, -1)) for p in places],
                results=self._stored(results),
                dead=self._stored_letters(dead),
                counts=json.dumps(counts_to_json(counts)),
            )
        self._unsure = _NOTHING
        self._working.difference_update(place.number for place in places)
        if answer == "refused":
            self._forget_lost_lanes()
            return False
        whole = [place.number for taken in done if taken.chosen is None for place in taken.places]
        self.blobs.forget(self._blob_of[number] for number in whole if number in self._blob_of)
        return True

    def _stored(self, results: Sequence[Parcel]) -> list[Any]:
        """Write the events down: where they are, and how many are for which lane."""
        if not results:
            return []
        places = [self._storage(parcel) for parcel in results]
        offsets = self.journal.write_all(
            [(*where, to_record(p)) for where, p in zip(places, results, strict=True)]
        )
        return [
            (parcel.operator, (*where, offset), *parts_of(parcel))
            for parcel, where, offset in zip(results, places, offsets, strict=True)
        ]

    def _storage(self, parcel: Parcel) -> tuple[str, int]:
        layout = self.journal.state.layout.get(parcel.operator)
        if layout is None:
            return self._place.topic(BLOBS), random.randrange(BLOB_PARTITIONS)
        lane = random.randrange(layout.lanes) if parcel.lane == SHARED_LANE else parcel.lane
        return topic_of(self._place, parcel.operator), lane % layout.lanes

    def _stored_letters(self, dead: Sequence[DeadLetter]) -> list[Any]:
        now = time.time()
        parcels = [
            Parcel(d.operator, d.lane, d.events, Births.evenly(d.events, now), d.data) for d in dead
        ]
        topic = self._place.topic(DEAD_LETTERS)
        offsets = self.journal.write_all([(topic, 0, to_record(p)) for p in parcels])
        return [
            (d.operator, (topic, 0, offset), d.events, d.error, d.lane, now)
            for d, offset in zip(dead, offsets, strict=True)
        ]

    def _forget_lost_lanes(self) -> None:
        lanes = self.journal.state.lanes.get(self._member[0], {})
        self._held = {
            lane: owned
            for lane, owned in self._held.items()
            if self._acts() and lane in lanes and lanes[lane].ownership == owned
        }

    def lengths(self, operator: str) -> Mapping[int, int]:
        """Read to the end, and look."""
        lanes = self.journal.sync().lanes.get(operator, {})
        return {number: lane.waiting for number, lane in lanes.items() if lane.arrived}

    def busy(self, name: MemberName) -> bool:
        """As far as the journal was read."""
        operator, replica = name
        lanes = self.journal.state.lanes.get(operator, {}).values()
        return any(lane.owner == replica and lane.waiting for lane in lanes)

    def begun(self, operator: str) -> bool:
        """Read to the end, and look."""
        lanes = self.journal.sync().lanes.get(operator, {}).values()
        return any(entry.named for lane in lanes for entry in lane.entries.values())

    def wait(self, seconds: float) -> bool:
        """Read the journal as it comes, until something is for this member."""
        ends = time.monotonic() + (0.0 if self.more else seconds)
        self.more = False
        while not (self._work or self._news):
            left = ends - time.monotonic()
            self.journal.follow(left)
            if left < SHORTEST_SECONDS:
                time.sleep(max(left, 0.0))
                break
        news, self._work, self._news = self._news, False, False
        return news

    def close(self) -> None:
        """Let go of the clients."""
        self.blobs.close()
        self.journal.close()

    def _notice(self, state: State) -> None:
        """See whether a command was for this member."""
        if self._name is None:
            return
        operator, _ = self._name
        if any(each in (None, operator) for each in state.news):
            self._news = True
        for name, lane in state.arrivals:
            if name == operator and (lane in self._held or lane == SHARED_LANE):
                self._work = True

    def _acts(self) -> bool:
        member = self.journal.state.members.get(self._member)
        return member is not None and member.process == self._process

    @property
    def _member(self) -> MemberName:
        assert self._name is not None, "join first"
        return self._name
