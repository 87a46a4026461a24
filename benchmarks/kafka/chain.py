"""A line of operators on Kafka, in the smallest form: take a unit, send it on, say how far we are.

A replica is a process. It reads the lanes it owns (partitions of its operator's topic), works in
units of about 18 events, and replaces each unit by its results in one transaction, with a record
of its position. This is what the Kafka backend does, without the engine around it, so variants can
be measured beside one another.
"""

from __future__ import annotations

import multiprocessing
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any, Literal

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

UNIT = 18
EVENT = struct.Struct("dd84x")
"""When an event was born, and when its last operator sent it: with the rest, 100 bytes."""
PATIENCE = 60.0


@dataclass(frozen=True)
class Variant:
    """A way to carry events from one operator to the next."""

    name: str
    producers: int = 1
    """Per replica; they take turns, so that one begins while the other's markers are written."""
    positions: Literal["records", "offsets"] = "records"
    """As records of our own in the transaction, or as offsets of a consumer group."""
    exactly_once: bool = True
    keyed: bool = False
    """Every event goes to its key's lane, instead of a unit to one lane."""
    gather: float = 0.0
    """Seconds to wait for more once something is there, while it is less than a unit."""
    fetch_wait: int = 500
    """Milliseconds that the broker holds back an answer when there is nothing to read."""
    retry: int = 2
    """`retry.backoff.ms`"""
    replicas: int = 1
    lanes: int = 4
    hops: int = 4
    rate: float = 28.0
    """Units per second and replica: 500 events, a quarter of 2,000 events per second."""
    seconds: float = 8.0
    warm_up: float = 3.0


@dataclass(frozen=True)
class Taken:
    """What a replica saw: one entry per unit."""

    hop: int
    times: list[float]
    """When units arrived."""
    hops: list[float]
    """Seconds since the operator before sent them: commit, markers and fetch."""
    ages: list[float]
    """Seconds since their birth."""
    events: int
    cpu: float
    """Seconds of processor time of this process."""


def topic(run: str, hop: int) -> str:
    """Where events wait for an operator; the last one is where they leave."""
    return f"{run}-{hop}"


def run(address: str, variant: Variant, name: str) -> list[Taken]:
    """Let events flow for a while; what every replica saw after the warm-up."""
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic(topic(name, hop), variant.lanes) for hop in range(variant.hops + 1)]
    topics.append(NewTopic(f"{name}-positions", variant.replicas * variant.hops))
    for created in admin.create_topics(topics).values():
        created.result(PATIENCE)
    found = lives(variant, address, name, _source, _replica)
    for gone in admin.delete_topics([each.topic for each in topics]).values():
        gone.result(PATIENCE)
    return found


def lives(
    variant: Variant,
    where: str,
    name: str,
    source: Callable[..., None],
    replica: Callable[..., None],
) -> list[Taken]:
    """Let sources and replicas live for a while, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    going, over, answers = context.Event(), context.Event(), context.Queue()
    ready = context.Semaphore(0)
    places = [
        (hop, number) for hop in range(variant.hops + 1) for number in range(variant.replicas)
    ]
    processes = [
        context.Process(target=replica, args=(where, variant, name, *place, ready, over, answers))
        for place in places
    ]
    processes += [
        context.Process(target=source, args=(where, variant, name, number, ready, going, over))
        for number in range(variant.replicas)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        if not ready.acquire(timeout=PATIENCE):
            raise TimeoutError("a replica did not start")
    going.set()
    time.sleep(variant.warm_up + variant.seconds)
    over.set()
    found = [answers.get(timeout=PATIENCE) for _ in places]
    for process in processes:
        process.join(PATIENCE)
    return found


class Outlet:
    """Sends units to the next operator, with the position that they replace."""

    def __init__(self, address: str, variant: Variant, run: str, hop: int, number: int) -> None:
        self._variant = variant
        self._next = topic(run, hop + 1)
        self._positions = f"{run}-positions"
        self._place = hop * variant.replicas + number
        self._lanes = cycle((*range(number, variant.lanes), *range(number)))
        settings: dict[str, Any] = {
            "bootstrap.servers": address,
            "linger.ms": 0,
            "retry.backoff.ms": variant.retry,
            "enable.idempotence": True,
        }
        if variant.exactly_once:
            settings["transaction.timeout.ms"] = 10_000
        self._producers = [
            Producer(
                {**settings, "transactional.id": f"{run}-{hop}-{number}-{turn}"}
                if variant.exactly_once
                else settings
            )
            for turn in range(variant.producers)
        ]
        if variant.exactly_once:
            for producer in self._producers:
                producer.init_transactions(PATIENCE)
        self._turns = cycle(self._producers)

    def send(
        self,
        events: Sequence[bytes],
        position: Sequence[TopicPartition] = (),
        group: Any = None,
    ) -> None:
        """All or nothing: a unit's events, and where its successor begins."""
        producer = next(self._turns)
        if self._variant.exactly_once:
            producer.begin_transaction()
        for lane, data in self._by_lane(events):
            producer.produce(self._next, data, partition=lane)
        if position and group is None:
            told = repr([(p.partition, p.offset) for p in position]).encode()
            producer.produce(self._positions, told, b"position", partition=self._place)
        if not self._variant.exactly_once:
            producer.flush(PATIENCE)
            return
        if group is not None:
            producer.send_offsets_to_transaction(list(position), group, PATIENCE)
        producer.commit_transaction(PATIENCE)

    def _by_lane(self, events: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        if not self._variant.keyed:
            yield next(self._lanes), b"".join(events)
            return
        lanes: dict[int, list[bytes]] = {}
        for event in events:
            lanes.setdefault(hash(event) % self._variant.lanes, []).append(event)
        for lane, those in lanes.items():
            yield lane, b"".join(those)


def _source(
    address: str,
    variant: Variant,
    run: str,
    number: int,
    ready: Any,
    going: Event,
    over: Event,
) -> None:
    outlet = Outlet(address, variant, run, -1, number)
    ready.release()
    going.wait()
    send_units(outlet.send, variant.rate, over)


def send_units(send: Callable[[Sequence[bytes]], None], rate: float, over: Event) -> None:
    """Units of new events at this rate, until it is over."""
    due = time.time()
    while not over.is_set():
        born = time.time()
        send([EVENT.pack(born, born + i * 1e-7) for i in range(UNIT)])
        due += 1 / rate
        time.sleep(max(0.0, due - time.time()))


def _replica(
    address: str,
    variant: Variant,
    run: str,
    hop: int,
    number: int,
    ready: Any,
    over: Event,
    answers: Queue[Taken],
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"{run}-{hop}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": variant.fetch_wait,
            "fetch.error.backoff.ms": 10,
        }
    )
    owned = range(number, variant.lanes, variant.replicas)
    consumer.assign([TopicPartition(topic(run, hop), lane, 0) for lane in owned])
    outlet = Outlet(address, variant, run, hop, number) if hop < variant.hops else None
    ready.release()
    group = consumer.consumer_group_metadata() if variant.positions == "offsets" else None
    seen = Taken(hop, [], [], [], 0, 0.0)
    begin, events, cpu = 0.0, 0, 0.0
    while not over.is_set():
        unit = list(_unit(consumer, variant.gather))
        if not unit:
            continue
        now = time.time()
        begin = begin or now
        first = EVENT.unpack_from(unit[0].value())
        if now > begin + variant.warm_up:
            cpu = cpu or time.process_time()
            seen.times.append(now)
            seen.hops.append(now - first[1])
            seen.ages.append(now - first[0])
            events += sum(len(message.value()) // EVENT.size for message in unit)
        if outlet is not None:
            outlet.send(list(_resent(unit)), _after(unit), group)
    answers.put(replace(seen, events=events, cpu=time.process_time() - cpu))


def _unit(consumer: Consumer, gather: float) -> Iterator[Message]:
    """What waits, up to a unit; pieces that follow one another closely make up one."""
    events, wait = 0, 0.2
    while events < UNIT and (message := consumer.poll(wait)) is not None:
        if message.error():
            raise RuntimeError(str(message.error()))
        yield message
        events += len(message.value()) // EVENT.size
        wait = gather


def _resent(unit: Sequence[Message]) -> Iterator[bytes]:
    now = time.time()
    for message in unit:
        for number, (born, _) in enumerate(EVENT.iter_unpack(message.value())):
            yield EVENT.pack(born, now + number * 1e-7)


def _after(unit: Sequence[Message]) -> list[TopicPartition]:
    """Where reading goes on, per lane."""
    ends = {(m.topic(), m.partition()): m.offset() + 1 for m in unit}
    return [TopicPartition(name, lane, offset) for (name, lane), offset in ends.items()]
