"""Reading records by their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from elastream.engines.spark.backends.kafka.clients import PASSING, PATIENCE, Place, translated
from elastream.engines.spark.backends.kafka.parcels import Stored, from_record
from elastream.engines.spark.backends.kafka.state import Blob
from elastream.errors import BackendUnavailableError, EngineError

MOST_KEPT = 32 * 1024 * 1024
"""How many bytes to keep of records that were read ahead; those of failed commits stay unused."""

AT_ONCE = 100
"""How many records readers ask for in one go."""


class Blobs:
    """Reads records by their offsets; those that follow one another are read in one go."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._consumer: Consumer | None = None
        self._next: dict[tuple[str, int], int] = {}
        """The partitions that are followed, and the next offset of each."""
        self._kept: dict[Blob, bytes] = {}
        self._bytes = 0

    def read(self, wanted: Iterable[Blob]) -> Mapping[Blob, Stored]:
        """These records."""
        wanted = set(wanted)
        missing = wanted - self._kept.keys()
        if missing:
            self._fetch(missing)
        found = {blob: from_record(self._kept[blob]) for blob in wanted}
        while self._bytes > MOST_KEPT:
            self.forget([next(iter(self._kept))])
        return found

    def forget(self, blobs: Iterable[Blob]) -> None:
        """These are needed no longer."""
        for blob in blobs:
            self._bytes -= len(self._kept.pop(blob, b""))

    def follow_only(self, topic: str, partitions: frozenset[int]) -> None:
        """Stop reading other partitions ahead."""
        others = [key for key in self._next if key[0] != topic or key[1] not in partitions]
        for key in others:
            del self._next[key]
        if others and self._consumer is not None:
            self._consumer.incremental_unassign([TopicPartition(*key) for key in others])
        self.forget([blob for blob in self._kept if blob[:2] not in self._next])

    def close(self) -> None:
        """Let go of the client."""
        if self._consumer is not None:
            self._consumer.close()

    def _fetch(self, missing: set[Blob]) -> None:
        if self._consumer is None:
            self._consumer = self._place.consumer()
        first: dict[tuple[str, int], int] = {}
        for topic, partition, offset in missing:
            first[topic, partition] = min(offset, first.get((topic, partition), offset))
        moved = {key: at for key, at in first.items() if not self._next.get(key, at + 1) <= at}
        known = [TopicPartition(*key) for key in moved if key in self._next]
        if known:
            self._consumer.incremental_unassign(known)
        if moved:
            self._consumer.incremental_assign([TopicPartition(*k, at) for k, at in moved.items()])
        self._next |= moved
        ends = monotonic() + PATIENCE
        while missing:
            message = self._consumer.poll(0.5)
            if monotonic() > ends:
                raise BackendUnavailableError(f"{len(missing)} records cannot be read")
            if message is None:
                continue
            if (error := message.error()) is not None:
                self._cope(error)
                continue
            missing.discard(self._keep(message))

    def _keep(self, message: Message) -> Blob:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        value = message.value()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        blob = Blob(topic, partition, offset)
        if blob not in self._kept and value is not None:
            self._kept[blob] = value
            self._bytes += len(value)
        self._next[topic, partition] = offset + 1
        return blob

    def _cope(self, error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise EngineError(
                f"events of {self._place.name} are gone from their topic: was it changed by hand?"
            )
        if error.code() not in PASSING and not error.retriable():
            raise translated(error, "reading events", self._place)
