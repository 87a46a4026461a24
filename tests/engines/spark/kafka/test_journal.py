"""The journal as one process reads it, without a broker."""

import json

import pytest

from elastream.engines.spark.backends.encoding import counts_to_json
from elastream.engines.spark.backends.kafka import journal as module
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.ledger import Counts
from elastream.errors import BackendUnavailableError

MEMBER = ("work", 0)


class Message:
    def __init__(self, value, offset):
        self._value, self._offset = value, offset

    def value(self):
        return self._value

    def offset(self):
        return self._offset

    def error(self):
        return None


class Consumer:
    """Reads one partition of a place's topics, except those that are away."""

    def __init__(self, place):
        self._place = place
        self._topic, self._next = "", 0

    def get_watermark_offsets(self, of, timeout, cached):
        return 0, len(self._place.topics[of.topic])

    def assign(self, partitions):
        (of,) = partitions
        self._topic, self._next = of.topic, of.offset

    def poll(self, seconds):
        found = self.consume(1, seconds)
        return found[0] if found else None

    def consume(self, most, seconds):
        if self._topic in self._place.away:
            return []
        values = self._place.topics[self._topic][self._next : self._next + most]
        self._next += len(values)
        return [Message(of, self._next - len(values) + n) for n, of in enumerate(values)]


class Producer:
    def __init__(self, place):
        self._place = place

    def produce(self, topic, value, key, partition, on_delivery):
        self._place.topics[topic].append(value)
        on_delivery(None, Message(value, len(self._place.topics[topic]) - 1))

    def poll(self, seconds):
        pass


class Place:
    name = "orders"

    def __init__(self):
        self.topics = {self.topic(kind): [] for kind in (module.JOURNAL, module.SNAPSHOTS)}
        self.away = set()

    def topic(self, kind):
        return f"{self.name}.{kind}"

    def producer(self):
        return Producer(self)

    def consumer(self, settings=None):
        return Consumer(self)


def commit(journal, sequence, events):
    counts = json.dumps(counts_to_json(Counts(emitted=events)))
    return journal.append(
        "commit",
        name=MEMBER,
        process="1:x",
        sequence=sequence,
        places=[],
        results=[],
        dead=[],
        counts=counts,
    )


def emitted(journal):
    return journal.count().counted[MEMBER].counts.emitted


def test_a_snapshot_that_cannot_be_read_now_is_read_later(monkeypatch):
    """Whoever began to count without it would take what was sent for not sent."""
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    place = Place()
    driver, member = Journal(place), Journal(place, keeps_counts=False)
    driver.append("join", name=MEMBER, process="1:x", generation=1, sequence=0)
    assert commit(driver, 1, events=5) == "done"
    driver.snapshot()
    assert commit(driver, 2, events=3) == "done"
    before = member.sync().members[MEMBER]
    place.away = {place.topic(module.SNAPSHOTS)}
    with pytest.raises(BackendUnavailableError, match="the newest snapshot"):
        member.count()
    assert member.sync().members[MEMBER] is before
    assert commit(driver, 3, events=2) == "done"
    place.away = set()
    assert emitted(member) == emitted(driver) == 10
