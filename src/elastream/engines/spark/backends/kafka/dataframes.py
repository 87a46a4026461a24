"""The way in from DataFrames and the way out to them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping

from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED, Inbox
from elastream.engines.spark.backends.kafka.blobs import AT_ONCE, Blobs
from elastream.engines.spark.backends.kafka.clients import Place
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.kafka.parcels import to_record
from elastream.engines.spark.backends.kafka.topics import BLOB_PARTITIONS, BLOBS
from elastream.engines.spark.backends.outbox import Outbox, output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.errors import EngineError


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
