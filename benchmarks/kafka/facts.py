"""What a Kafka backend rests on, tried on a real broker: fencing, dead producers, deletes.

Run it again when Kafka or librdkafka change: `python -m benchmarks.kafka.facts`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.kafka.broker import Cluster

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report

PATIENCE = 30.0
TIMEOUT_MS = 5_000
"""`transaction.timeout.ms` of the producers here."""


class Bench:
    """A broker, and a new topic for every question."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._admin = AdminClient(self._settings())
        self._topics = 0

    def topic(self, partitions: int = 1) -> str:
        """A new one."""
        self._topics += 1
        name = f"fact-{self._topics}"
        self._admin.create_topics([NewTopic(name, partitions)])[name].result(PATIENCE)
        return name

    def producer(self, transactional_id: str) -> Producer:
        """One that holds the id from now on."""
        producer = Producer(
            self._settings()
            | {
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TIMEOUT_MS,
                "linger.ms": 0,
                "retry.backoff.ms": 2,
            }
        )
        producer.init_transactions(PATIENCE)
        return producer

    @contextmanager
    def reader(self, topic: str, wait_ms: int = 500, group: str = "none") -> Iterator[Consumer]:
        """Reads what is committed, from the beginning."""
        consumer = Consumer(
            self._settings()
            | {
                "group.id": group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": wait_ms,
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        try:
            yield consumer
        finally:
            consumer.close()

    def delete(self, topic: str, upto: int) -> int:
        """Delete records; the offset of the first that is left."""
        upto_there = TopicPartition(topic, 0, upto)
        (done,) = self._admin.delete_records([upto_there]).values()
        return done.result(PATIENCE).low_watermark

    def _settings(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.address, "log_level": 0}


def main() -> bool:
    """Ask everything; whether every fact holds."""
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder) / "kafka") as cluster:
        bench = Bench(cluster.address)
        facts = [
            *fencing(bench),
            *dead_producer(bench),
            stale_offsets(bench),
            *turns(bench),
            *waking(bench),
            *deleting(bench),
        ]
    return report("Facts for a Kafka backend", facts)


def fencing(bench: Bench) -> list[Figure]:
    """`init_transactions` aborts what the holder before had open, and refuses its commit."""
    topic = bench.topic()
    former = bench.producer("fenced")
    former.begin_transaction()
    former.produce(topic, b"former")
    former.flush(PATIENCE)
    start = time.perf_counter()
    later = bench.producer("fenced")
    taken = time.perf_counter() - start
    refused = _refusal(former)
    _commit(later, topic, b"later")
    with bench.reader(topic) as reader:
        message = reader.poll(PATIENCE)
    only_later = message is not None and message.value() == b"later"
    return [
        Figure("the former holder's commit", refused or "accepted", "refused", bool(refused)),
        Figure("its records", "aborted" if only_later else "seen", "aborted", only_later),
        Figure("init_transactions over an open transaction", f"{taken * 1e3:.0f} ms"),
    ]


def dead_producer(bench: Bench) -> list[Figure]:
    """Readers of its lanes wait until its id is inited, or its transaction times out."""
    figures = []
    for remedy in ("its id is inited again", f"its time-out of {TIMEOUT_MS / 1e3:.0f} s"):
        topic = bench.topic()
        _die_inside_a_transaction(bench.address, topic, remedy)
        start = time.perf_counter()
        _commit(bench.producer(f"other-{topic}"), topic, b"other")
        with bench.reader(topic) as reader:
            blocked = reader.poll(1.0) is None
            begin = time.perf_counter()
            if remedy.startswith("its id"):
                bench.producer(f"dies-{topic}")
                start = begin
            message = reader.poll(PATIENCE)
        came = message is not None and message.value() == b"other"
        waited = time.perf_counter() - start
        figures.append(
            Figure(
                f"a dead producer holds back others' records until {remedy}",
                f"{waited:.1f} s" if blocked and came else "it does not",
                met=blocked and came,
            )
        )
    return figures


def stale_offsets(bench: Bench) -> Figure:
    """With `assign()`, a transaction's offsets do not fence whoever owned the lane before."""
    topic = bench.topic()
    producer = bench.producer("stale")
    with bench.reader(topic, group="lane") as stale, bench.reader(topic, group="lane"):
        producer.begin_transaction()
        producer.produce(topic, b"stale")
        metadata = stale.consumer_group_metadata()
        try:
            producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], metadata, PATIENCE)
            producer.commit_transaction(PATIENCE)
        except KafkaException as refusal:
            return Figure("offsets of a stale reader", str(refusal), "accepted", False)
    return Figure("offsets of a stale reader with assign()", "accepted", "accepted", True)


def turns(bench: Bench, count: int = 150) -> list[Figure]:
    """A transaction that begins before the last one's markers are written is tried again later."""
    figures = []
    for many in (1, 2):
        topic = bench.topic(4)
        producers = [bench.producer(f"turns-{many}-{number}") for number in range(many)]
        taken = []
        for number in range(count):
            start = time.perf_counter()
            producer = producers[number % many]
            producer.begin_transaction()
            for lane in range(2):
                producer.produce(topic, b"unit", partition=lane)
            producer.commit_transaction(PATIENCE)
            taken.append(time.perf_counter() - start)
        steady = sorted(taken[count // 3 :])
        figures.append(
            Figure(
                f"a transaction, one straight after the other, producers: {many}",
                f"p50 {statistics.median(steady) * 1e3:.1f} ms, "
                f"p90 {steady[len(steady) * 9 // 10] * 1e3:.1f} ms",
            )
        )
    return figures


def waking(bench: Bench, count: int = 60) -> list[Figure]:
    """A reader that waits at the broker is woken by a commit: it need not ask often."""
    figures = []
    for wait in (10, 500):
        topic = bench.topic()
        producer = bench.producer(f"waking-{wait}")
        taken = []
        with bench.reader(topic, wait) as reader:
            for _ in range(count):
                time.sleep(0.02)
                _commit(producer, topic, b"unit")
                start = time.perf_counter()
                if reader.poll(PATIENCE) is None:
                    return [Figure("a committed record", "never came", met=False)]
                taken.append(time.perf_counter() - start)
        steady = statistics.median(taken[count // 3 :])
        figures.append(
            Figure(f"from commit to reader, fetch.wait.max.ms {wait}", f"p50 {steady * 1e3:.1f} ms")
        )
    return figures


def deleting(bench: Bench) -> list[Figure]:
    """What is consumed can be deleted, at a price that allows it once in a while."""
    topic = bench.topic()
    producer = bench.producer("deleting")
    for _ in range(20):
        _commit(producer, topic, b"unit")
    start = time.perf_counter()
    low = bench.delete(topic, 20)
    taken = time.perf_counter() - start
    return [
        Figure("delete_records", f"{taken * 1e3:.0f} ms, first left: {low}", "20", low == 20),
    ]


def _commit(producer: Producer, topic: str, value: bytes) -> None:
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.commit_transaction(PATIENCE)


def _refusal(producer: Producer) -> str | None:
    try:
        producer.commit_transaction(PATIENCE)
    except KafkaException as error:
        return f"refused ({error.args[0].name()})"
    return None


def _die_inside_a_transaction(address: str, topic: str, remedy: str) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_die, args=(address, topic))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL, f"the producer lives on; {remedy}"


def _die(address: str, topic: str) -> None:
    producer = Bench(address).producer(f"dies-{topic}")
    producer.begin_transaction()
    producer.produce(topic, b"unfinished")
    producer.flush(PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    by_hand(main)
