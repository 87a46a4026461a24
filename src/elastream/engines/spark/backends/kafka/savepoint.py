"""What a state on Kafka keeps when nobody works, as pieces that any backend can take."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from itertools import islice
from typing import Any

from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.encoding import counts_to_json
from elastream.engines.spark.backends.kafka.blobs import Blobs
from elastream.engines.spark.backends.kafka.clients import Place
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.kafka.parcels import Stored, rows_of, to_record
from elastream.engines.spark.backends.kafka.state import Entry, State
from elastream.engines.spark.backends.kafka.topics import (
    BLOB_PARTITIONS,
    BLOBS,
    DEAD_LETTERS,
    topic_of,
)
from elastream.engines.spark.backends.kept import (
    Admitted,
    Counted,
    Kept,
    OutputBatch,
    OutputPosition,
    Waiting,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.outbox import is_output
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births

AT_ONCE = 100
"""Pieces that are read or written in one go."""


def kept(state: State, blobs: Blobs) -> Iterator[Kept]:
    """Everything that the state names."""
    outputs = {name for name in state.lanes if is_output(name)} | state.consumed.keys()
    for output in sorted(outputs):
        yield OutputPosition(output, state.consumed.get(output, 0), state.numbers)
    for source, number in state.admitted.items():
        yield Admitted(source, number)
    for member, running in state.counted.items():
        yield Counted(member, running.counts)
    waiting = [
        (entry, operator, lane)
        for operator, lanes in state.lanes.items()
        for lane, of in lanes.items()
        for entry in of.entries.values()
    ]
    waiting.sort(key=lambda each: each[0].number)
    some = iter(waiting)
    while part := list(islice(some, AT_ONCE)):
        stored = blobs.read(entry.blob for entry, _, _ in part)
        for entry, operator, lane in part:
            yield _piece(entry, operator, lane, stored[entry.blob])
    for number, letter in sorted(state.letters.items()):
        data = blobs.read([letter.blob])[letter.blob].data
        yield DeadLetter(
            letter.operator, letter.events, letter.error, data, letter.lane, letter.time, number
        )


def _piece(entry: Entry, operator: str, lane: int, stored: Stored) -> Kept:
    if is_output(operator):
        return OutputBatch(operator, entry.number, entry.events, stored.data)
    rows, data, births = rows_of(entry, stored, entry.events), stored.data, stored.births
    if len(rows) < births.events:
        data, births = to_bytes(from_bytes(data).take(rows)), births.chosen(rows)
    if entry.born is not None:
        births = Births.evenly(entry.events, entry.born)
    unit = entry.named._replace(first=0) if entry.named else None
    return Waiting(operator, lane, entry.events, births, data, entry.deaths, unit)


def restore(
    journal: Journal,
    place: Place,
    pipeline: str,
    operators: Mapping[str, OperatorLanes],
    pieces: Iterable[Kept],
) -> bool:
    """Fill a state that is nobody's, whose topics are there; False if it is somebody's."""
    layout = {name: astuple(of) for name, of in operators.items()}
    if not journal.append("begin_restore", layout=layout):
        return False
    left = iter(pieces)
    while part := list(islice(left, AT_ONCE)):
        told = [_record_of(piece, operators, place) for piece in part]
        records = [(topic, number, to_record(p)) for _, _, p, topic, number in told if p]
        offsets = iter(journal.write_all(records) if records else ())
        journal.append(
            "restore",
            pieces=[
                (kind, values, (topic, number, next(offsets)) if parcel else None)
                for kind, values, parcel, topic, number in told
            ],
        )
    journal.append("end_restore", pipeline=pipeline)
    return True


def _record_of(
    piece: Kept, operators: Mapping[str, OperatorLanes], place: Place
) -> tuple[str, list[Any], Parcel | None, str, int]:
    """What the journal records of a piece; and its events, and where they are stored."""
    blobs, any_of_them = place.topic(BLOBS), random.randrange(BLOB_PARTITIONS)
    match piece:
        case OutputPosition(output, consumed, newest):
            return "position", [output, consumed, newest], None, "", 0
        case Admitted(source, number):
            return "admitted", [source, number], None, "", 0
        case Counted(member, counts):
            return "counted", [*member, counts_to_json(counts)], None, "", 0
        case Waiting(operator, lane, events, births, data, deaths, unit):
            parcel = Parcel(operator, lane, events, births, data)
            topic, partition = blobs, any_of_them
            if operator in operators:
                count = operators[operator].lanes
                topic = topic_of(place, operator)
                partition = (any_of_them if lane == SHARED_LANE else lane) % count
            return "waiting", [operator, lane, events, deaths, unit], parcel, topic, partition
        case OutputBatch(output, number, events, data):
            parcel = Parcel(output, 0, events, Births.evenly(events, 0.0), data)
            return "output", [output, number, events], parcel, blobs, any_of_them
        case DeadLetter(operator, events, error, data, lane, time, _):
            parcel = Parcel(operator, lane, events, Births.evenly(events, time), data)
            values = [operator, events, error, lane, time]
            return "letter", values, parcel, place.topic(DEAD_LETTERS), 0
