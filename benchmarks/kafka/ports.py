"""The same line of operators through the backend's own ports: lanes, journal and all."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.kafka.chain import UNIT, Taken, Variant, lives
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.base import Counts, OperatorLanes, Parcel
from elastream.engines.spark.births import Births


def run(address: str, variant: Variant, name: str) -> list[Taken]:
    """Let events flow for a while; what every replica saw after the warm-up."""
    backend = open_backend(f"kafka:{address}/{name}")
    operators = {_operator(hop): OperatorLanes(variant.lanes) for hop in range(variant.hops + 1)}
    backend.prepare(name, operators)
    with backend.own():
        found = lives(variant, backend.url, name, _source, _replica)
    backend.remove()  # type: ignore[attr-defined]
    return found


def _operator(hop: int) -> str:
    return f"hop-{hop}"


def _unit(variant: Variant, hop: int, lane: int, data: bytes, births: Births) -> Parcel:
    """Events for one lane, or each for the lane of its key."""
    if not variant.keyed:
        return Parcel(_operator(hop), lane % variant.lanes, births.events, births, data)
    lane_of = np.arange(lane, lane + births.events) * 7 % variant.lanes
    return Parcel.for_lanes(_operator(hop), lane_of, births, data)


def _source(
    url: str, variant: Variant, _: str, number: int, ready: Any, going: Event, over: Event
) -> None:
    with closing(open_backend(url).connect()) as end:
        end.lanes.join(("source", number), 1)
        ready.release()
        going.wait()
        due, sent = time.time(), number
        while not over.is_set():
            now = time.time()
            sent += variant.replicas
            data = to_bytes(pa.table({"at": np.full(UNIT, now), "more": [b"x" * 84] * UNIT}))
            unit = _unit(variant, 0, sent, data, Births.evenly(UNIT, now))
            end.lanes.commit([], [unit], Counts(emitted=UNIT))
            due += 1 / variant.rate
            time.sleep(max(0.0, due - time.time()))


def _replica(
    url: str,
    variant: Variant,
    _: str,
    hop: int,
    number: int,
    ready: Any,
    over: Event,
    answers: Queue[Taken],
) -> None:
    seen, begin, events, cpu, sent = Taken(hop, [], [], [], 0, 0.0), 0.0, 0, 0.0, number
    with closing(open_backend(url).connect()) as end:
        end.lanes.join((_operator(hop), number), 1)
        end.lanes.hold(frozenset(range(number, variant.lanes, variant.replicas)))
        ready.release()
        while not over.is_set():
            taken = end.lanes.take(UNIT)
            if not taken:
                end.lanes.wait(0.2)
                continue
            now = time.time()
            begin = begin or now
            tables = [from_bytes(each.data) for each in taken]
            sent += variant.replicas
            if now > begin + variant.warm_up:
                cpu = cpu or time.process_time()
                seen.times.append(now)
                seen.hops.append(now - tables[0]["at"][0].as_py())
                seen.ages.append(now - taken[0].births.runs[0].first)
                events += sum(each.events for each in taken)
            table = pa.concat_tables(
                table if each.chosen is None else table.take(each.chosen)
                for table, each in zip(tables, taken, strict=True)
            )
            births = Births.joined(each.births for each in taken)
            table = table.set_column(0, "at", pa.array(np.full(len(table), now)))
            results = [_unit(variant, hop + 1, sent, to_bytes(table), births)]
            end.lanes.commit(
                taken, results if hop < variant.hops else [], Counts(processed=len(table))
            )
    answers.put(replace(seen, events=events, cpu=time.process_time() - cpu))
