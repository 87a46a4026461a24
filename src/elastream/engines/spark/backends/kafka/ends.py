"""The other ports: the ledger, dead letters, and DataFrames at both ends."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from elastream.engines.spark.backends.dead_letters import DeadLetter, DeadLetters
from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED, Inbox
from elastream.engines.spark.backends.kafka.blobs import Blobs
from elastream.engines.spark.backends.kafka.clients import Place
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.kafka.parcels import to_record
from elastream.engines.spark.backends.kafka.topics import BLOB_PARTITIONS, BLOBS
from elastream.engines.spark.backends.ledger import Counts, LaneStates, Ledger, Totals
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.outbox import Outbox, output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.errors import EngineError

AT_ONCE = 100
"""Records that are read in one go."""


class KafkaLedger(Ledger):
    """What the journal's commits add up to."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def totals(self) -> Totals:
        """All of one moment."""
        state = self._journal.count()
        counts = {name: of.counts for name, of in state.counted.items()}
        return Totals(counts, state.lane_states())

    def lanes(self) -> LaneStates:
        """Of the same moment."""
        return self._journal.count().lane_states()

    def counts(self, name: MemberName) -> Counts:
        """One member's."""
        found = self._journal.count().counted.get(name)
        return Counts() if found is None else found.counts


class KafkaDeadLetters(DeadLetters):
    """Their events are in a topic of their own, everything else is in the journal."""

    def __init__(self, journal: Journal, blobs: Blobs) -> None:
        self._journal = journal
        self._blobs = blobs

    def read(self, operator: str | None = None) -> Iterator[DeadLetter]:
        """A few at a time."""
        found = [
            (number, letter)
            for number, letter in sorted(self._journal.sync().letters.items(), reverse=True)
            if operator in (None, letter.operator)
        ]
        for first in range(0, len(found), AT_ONCE):
            some = found[first : first + AT_ONCE]
            stored = self._blobs.read(letter.blob for _, letter in some)
            for number, of in some:
                data = stored[of.blob].data
                yield DeadLetter(of.operator, of.events, of.error, data, of.lane, of.time, number)

    def errors(self, after: int) -> tuple[int, Mapping[tuple[str, str], int]]:
        """Count those with higher numbers."""
        news = {n: of for n, of in self._journal.sync().letters.items() if n > after}
        errors: Counter[tuple[str, str]] = Counter()
        for letter in news.values():
            errors[letter.operator, letter.error] += letter.events
        return max(news, default=after), dict(errors)

    def retry(self, letters: Sequence[DeadLetter]) -> int:
        """Append their numbers: those that are gone already come to nothing."""
        layout = self._journal.sync().layout
        lanes = [
            layout[each.operator].lane_again(each) if each.operator in layout else each.lane
            for each in letters
        ]
        numbers = [letter.number for letter in letters]
        again: int = self._journal.append("retry", numbers=numbers, lanes=lanes, time=time.time())
        return again


class KafkaInbox(Inbox):
    """One end of a source's inbox, for one process or thread."""

    def __init__(self, place: Place, source: str) -> None:
        self._journal = Journal(place)
        self._topic = place.topic(BLOBS)
        self._source = source

    def stage(self, name: str, events: int, data: bytes) -> None:
        """Store the events, then append where they are."""
        record = to_record(Parcel(self._source, 0, events, Births.evenly(events, 0.0), data))
        kept = False
        while not kept:
            partition = random.randrange(BLOB_PARTITIONS)
            offset = self._journal.write(self._topic, partition, record)
            kept = self._journal.append(
                "stage",
                source=self._source,
                name=name,
                events=events,
                blob=(self._topic, partition, offset),
            )

    def admit(self, number: int, staged: Mapping[str, int]) -> bool:
        """Append which of them count."""
        answer = self._journal.append(
            "admit", source=self._source, number=number, staged=dict(staged), time=time.time()
        )
        if isinstance(answer, list):
            events, found = answer
            raise EngineError(
                f"source {self._source!r}: {events} events were staged, and {found} are there"
            )
        return bool(answer)

    def admitted(self) -> int:
        """Look it up."""
        return self._journal.sync().admitted.get(self._source, NOTHING_ADMITTED)

    def discard(self) -> None:
        """Append it."""
        self._journal.append("discard", source=self._source)

    def waiting(self) -> int:
        """The length of the source's lane."""
        lanes = self._journal.sync().lanes.get(self._source, {})
        return sum(lane.waiting for lane in lanes.values())

    def close(self) -> None:
        """Let go of the clients."""
        self._journal.close()


class KafkaOutbox(Outbox):
    """One end of an operator's outbox, for one process or thread."""

    def __init__(self, place: Place, operator: str) -> None:
        self._journal = Journal(place)
        self._blobs = Blobs(place)
        self._operator = output_of(operator)

    def newest(self) -> int:
        """The journal's order is the order of the numbers."""
        entries = self._journal.sync().lane(self._operator, 0).entries
        return max(next(reversed(entries), 0), self.consumed())

    def read(self, after: int, upto: int) -> Iterator[bytes]:
        """A few at a time."""
        lane = self._journal.sync().lane(self._operator, 0)
        found = [of.blob for number, of in lane.entries.items() if after < number <= upto]
        for first in range(0, len(found), AT_ONCE):
            some = found[first : first + AT_ONCE]
            stored = self._blobs.read(some)
            for blob in some:
                yield stored[blob].data
            self._blobs.forget(some)

    def consume(self, upto: int) -> None:
        """Append it, unless that has happened."""
        if upto > self.consumed():
            self._journal.append("consume", operator=self._operator, upto=upto)

    def consumed(self) -> int:
        """Look it up."""
        return self._journal.sync().consumed.get(self._operator, 0)

    def close(self) -> None:
        """Let go of the clients."""
        self._blobs.close()
        self._journal.close()
