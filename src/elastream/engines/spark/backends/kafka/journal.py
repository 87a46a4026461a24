"""The journal: one partition whose order decides everything that members must agree on."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from elastream.engines.spark.backends.kafka.clients import PASSING, PATIENCE, Place, translated
from elastream.engines.spark.backends.kafka.commands import Command, apply
from elastream.engines.spark.backends.kafka.snapshot import from_snapshot, to_snapshot
from elastream.engines.spark.backends.kafka.state import State
from elastream.engines.spark.backends.kafka.topics import JOURNAL, SNAPSHOTS
from elastream.engines.spark.backends.kafka.versions import NEWEST, VERSION
from elastream.errors import BackendUnavailableError, InvalidInputError

_GONE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
_MISSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
MISSING_SECONDS = 10.0
"""A topic that is unknown for this long does not exist; a starting broker may not know it yet."""
MOST = 500
"""Records to read at once."""
GATHERING = {"queued.min.messages": 1, "fetch.queue.backoff.ms": 5}
"""After a record, the next ones are fetched together this many milliseconds later. Every member
reads every commit: one by one, the broker would be busy with nothing else."""


class Journal:
    """One end of the journal, for one process or thread, and the state that follows from it.

    Args:
        place: Whose journal.
        notice: Called after every command, to see what it has changed.
        keeps_counts: Whether to count what commits say; `count` begins later.
    """

    def __init__(
        self,
        place: Place,
        notice: Callable[[State], None] | None = None,
        keeps_counts: bool = True,
    ) -> None:
        self._place = place
        self._topic = place.topic(JOURNAL)
        self._notice = notice
        self._producer = place.producer()
        self._consumer = place.consumer(GATHERING)
        # A broker answers one request of a connection after the other, and holds back the answer
        # to a reader that waits for news: questions would wait behind it.
        self._asker = place.consumer()
        self._awaited = -1
        """The offset of the command whose result somebody here waits for."""
        self._result: list[Any] = []
        self._found = False
        """Whether the journal was there: then it is away for a while if it is not now."""
        self.state = State(keeps_counts=keeps_counts)
        self.position = 0
        try:
            self._load(keeps_counts)
        except BaseException:  # It may be tried again and again.
            self.close()
            raise

    def append(self, do: str, **arguments: Any) -> Any:
        """Append a command, and wait until it takes effect; returns its result."""
        command = {VERSION: NEWEST, "do": do, **arguments}
        offset = self.write(self._topic, 0, json.dumps(command).encode())
        self._awaited, self._result = offset, []
        ends = monotonic() + PATIENCE
        while self.position <= offset:
            self._read(ends - monotonic())
            if monotonic() > ends:
                raise BackendUnavailableError(f"{self._topic} does not show what was written")
        if not self._result:
            raise BackendUnavailableError(f"{self._topic} was cut before its result was seen")
        return self._result[0]

    def write(self, topic: str, partition: int, value: bytes, key: bytes | None = None) -> int:
        """Add a record to a topic, durably; its offset."""
        (offset,) = self.write_all([(topic, partition, value)], key)
        return offset

    def write_all(
        self, records: list[tuple[str, int, bytes]], key: bytes | None = None
    ) -> list[int]:
        """Add records side by side; their offsets."""
        told: dict[int, Message | KafkaError] = {}
        for number, (topic, partition, value) in enumerate(records):
            self._producer.produce(topic, value, key, partition, on_delivery=_keeper(told, number))
        ends = monotonic() + PATIENCE + 5
        while len(told) < len(records) and monotonic() < ends:
            self._producer.poll(0.1)
        offsets = []
        for number, (topic, _, _) in enumerate(records):
            answer = told.get(number)
            if isinstance(answer, KafkaError):
                raise translated(answer, f"writing to {topic}", self._place)
            if answer is None or (offset := answer.offset()) is None:
                raise BackendUnavailableError(f"writing to {topic}: no answer")
            offsets.append(offset)
        return offsets

    def sync(self) -> State:
        """Read to the end; the state as it is now."""
        end = self._watermarks(self._topic)[1]
        ends = monotonic() + PATIENCE
        while self.position < end:
            self._read(ends - monotonic())
            if monotonic() > ends:
                raise BackendUnavailableError(f"{self._topic} cannot be read to its end")
        return self.state

    def count(self) -> State:
        """Read to the end, with what commits say that they counted, from now on."""
        if not self.state.keeps_counts:
            self._load(keeps_counts=True)
        return self.sync()

    def follow(self, seconds: float) -> None:
        """Read what comes, and wait at most this long for it."""
        self._read(seconds)

    def snapshot(self) -> int:
        """Write the state down, so that nobody has to read what led to it; up to which offset."""
        self.count()
        data = zlib.compress(to_snapshot(self.state), 1)
        content = self.position.to_bytes(8, "big") + data
        self.write(self._place.topic(SNAPSHOTS), 0, content, b"state")
        return self.position

    def close(self) -> None:
        """Let go of the clients."""
        self._consumer.close()
        self._asker.close()

    def _load(self, keeps_counts: bool) -> None:
        """Begin with the newest snapshot; if it cannot be read, nothing has happened."""
        topic = self._place.topic(SNAPSHOTS)
        low, high = self._watermarks(topic)
        state, position = State(), self._watermarks(self._topic)[0]
        self._found = True
        try:
            if high > low:
                content = _last(self._consumer, topic, high, self._place)
                position = int.from_bytes(content[:8], "big")
                state = from_snapshot(zlib.decompress(content[8:]))
            state.keeps_counts = keeps_counts
            self.state, self.position = state, position
        finally:
            self._continue()

    def _watermarks(self, topic: str) -> tuple[int, int]:
        """The offsets of the first record and after the last; a new leader is waited for."""
        began = monotonic()
        while True:
            try:
                low, high = self._asker.get_watermark_offsets(
                    TopicPartition(topic, 0), PATIENCE, cached=False
                )
            except KafkaException as error:
                waited = monotonic() - began
                missing = not self._found and error.args[0].code() in _MISSING
                if missing and waited > MISSING_SECONDS:
                    raise InvalidInputError(
                        f"there is no state 'kafka:{self._place}': no run has used it, or it was "
                        "removed"
                    ) from None
                problem = translated(error, f"reading {topic}", self._place)
                if not isinstance(problem, BackendUnavailableError) or waited > PATIENCE:
                    raise problem from error
                sleep(0.02)
            else:
                return low, high

    def _read(self, seconds: float) -> None:
        """Apply what is there; wait for something if there is nothing."""
        message = self._consumer.poll(max(0.0, seconds))
        messages = [] if message is None else [message]
        try:
            while messages and all(map(self._apply, messages)):
                messages = self._consumer.consume(MOST, 0.0)
        except BaseException:
            self._continue()  # Somebody interrupted us: the rest of what was read comes again.
            raise

    def _continue(self) -> None:
        self._consumer.assign([TopicPartition(self._topic, 0, self.position)])

    def _apply(self, message: Message) -> bool:
        """Do what a record says; False if the reader had to begin elsewhere."""
        if (error := message.error()) is not None:
            return self._cope(error)
        offset, value = message.offset(), message.value()
        if offset is None or value is None or offset < self.position:
            return True
        command: Command = json.loads(value)
        result = apply(self.state, command)
        self.position = offset + 1
        if offset == self._awaited:
            self._result = [result]
        if self._notice is not None:
            self._notice(self.state)
        return True

    def _cope(self, error: KafkaError) -> bool:
        if error.code() in _GONE:
            self._load(self.state.keeps_counts)
            return False
        if error.code() not in PASSING and (error.code() in _MISSING or not error.retriable()):
            raise translated(error, f"reading {self._topic}", self._place)
        return True


def _keeper(told: dict[int, Message | KafkaError], number: int) -> Callable[[Any, Any], None]:
    def keep(error: KafkaError | None, message: Message) -> None:
        told[number] = message if error is None else error

    return keep


def _last(consumer: Consumer, topic: str, high: int, place: Place) -> bytes:
    """The value of the last record of a topic."""
    consumer.assign([TopicPartition(topic, 0, high - 1)])
    ends = monotonic() + PATIENCE
    while monotonic() < ends:
        message = consumer.poll(0.5)
        if message is None or message.error() is not None:
            continue
        value = message.value()
        if value is not None:
            return value
    raise BackendUnavailableError(f"the newest snapshot of {place.name} cannot be read")
