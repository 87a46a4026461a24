"""The same line of operators through a backend's own ports, without Spark around them.

It runs on any backend, so that the journal on Kafka can be measured beside transactions, and beside
the SQLite backend on the same machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any

import numpy as np

from benchmarks.kafka.chain import EVENT, UNIT, Taken, Variant, lives, send_units
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.lanes import Lanes
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births


def run(state: str, variant: Variant, name: str) -> list[Taken]:
    """Let events flow for a while; what every replica saw after the warm-up."""
    backend = open_backend(state)
    operators = [_operator(hop) for hop in range(variant.hops + 1)]
    backend.prepare(name, {each: OperatorLanes(variant.lanes) for each in operators})
    members: list[MemberName] = [
        (operator, number)
        for operator in ("source", *operators)
        for number in range(variant.replicas)
    ]
    with backend.connect() as connection:
        generation = connection.board.new_generation(members)
        connection.board.start(generation)
    return lives(variant, state, str(generation), _source, _replica)


def _operator(hop: int) -> str:
    return f"operator-{hop}"


class Outlet:
    """Sends units to the next operator, instead of those that they replace."""

    def __init__(self, lanes: Lanes, variant: Variant, hop: int, number: int) -> None:
        self._lanes = lanes
        self._next = _operator(hop + 1)
        self._number_of_lanes = variant.lanes
        self._keyed = variant.keyed
        self._turns = cycle((*range(number, variant.lanes), *range(number)))

    def send(self, events: Sequence[bytes], done: Sequence[Any] = ()) -> None:
        """All or nothing."""
        births = Births.evenly(len(events), time.time())
        data = b"".join(events)
        if self._keyed:
            of = np.array([hash(each) % self._number_of_lanes for each in events])
            parcel = Parcel.for_lanes(self._next, of, births, data)
        else:
            parcel = Parcel(self._next, next(self._turns), len(events), births, data)
        counts = Counts(len(events), len(events), sent={self._next: len(events)})
        if not self._lanes.commit(done, [parcel], counts):
            raise RuntimeError("nobody takes lanes away here, and yet a commit was refused")


def _source(
    state: str,
    variant: Variant,
    generation: str,
    number: int,
    ready: Any,
    going: Event,
    over: Event,
) -> None:
    with open_backend(state).connect() as connection:
        connection.lanes.join(("source", number), int(generation))
        outlet = Outlet(connection.lanes, variant, -1, number)
        ready.release()
        going.wait()
        send_units(outlet.send, variant.rate, over)


def _replica(
    state: str,
    variant: Variant,
    generation: str,
    hop: int,
    number: int,
    ready: Any,
    over: Event,
    answers: Queue[Taken],
) -> None:
    with open_backend(state).connect() as connection:
        lanes = connection.lanes
        lanes.join((_operator(hop), number), int(generation))
        lanes.hold(frozenset(range(number, variant.lanes, variant.replicas)))
        outlet = Outlet(lanes, variant, hop, number) if hop < variant.hops else None
        ready.release()
        seen = Taken(hop, [], [], [], 0, 0.0)
        begin, events, cpu = 0.0, 0, 0.0
        while not over.is_set():
            unit = lanes.take(UNIT)
            if not unit:
                lanes.wait(0.2)
                continue
            now = time.time()
            begin = begin or now
            came = [each for taken in unit for each in _events(taken.data, taken.chosen)]
            if now > begin + variant.warm_up:
                cpu = cpu or time.process_time()
                seen.times.append(now)
                seen.hops.append(now - came[0][1])
                seen.ages.append(now - came[0][0])
                events += len(came)
            if outlet is not None:
                sent = time.time()
                resent = [EVENT.pack(born, sent + i * 1e-7) for i, (born, _) in enumerate(came)]
                outlet.send(resent, unit)
            else:
                lanes.commit(unit, [], Counts(len(came)))
    answers.put(replace(seen, events=events, cpu=time.process_time() - cpu))


def _events(data: bytes, chosen: Any) -> list[tuple[float, float]]:
    every = list(EVENT.iter_unpack(data))
    return every if chosen is None else [every[int(place)] for place in chosen]
