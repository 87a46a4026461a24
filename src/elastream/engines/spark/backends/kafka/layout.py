"""How what waits is moved when an operator's lanes change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.kafka.blobs import Blobs
from elastream.engines.spark.backends.kafka.clients import Place
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.kafka.parcels import rows_of, to_record
from elastream.engines.spark.backends.kafka.state import Entry
from elastream.engines.spark.backends.kafka.topics import topic_of
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.moving import new_lanes, pieces
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births


def lay_out(journal: Journal, place: Place, operator: str, wanted: OperatorLanes) -> None:
    """Make the lanes; what waits under another layout is moved, in its order."""
    state = journal.sync()
    if state.layout.get(operator) == wanted:
        return
    waiting = sorted(
        (
            (entry, number)
            for number, lane in state.lanes.get(operator, {}).items()
            for entry in lane.entries.values()
        ),
        key=lambda each: each[0].number,
    )
    if wanted.key is None or wanted.shared:
        moved = [_folded(entry, lane, wanted) for entry, lane in waiting]
    else:
        with closing(Blobs(place)) as blobs:
            moved = [
                each
                for entry, lane in waiting
                for each in _by_key(journal, place, blobs, operator, entry, lane, wanted)
            ]
    journal.append(
        "lay_out",
        operator=operator,
        layout=(wanted.lanes, wanted.key, wanted.shared, wanted.chained_to),
        waiting=moved,
    )


def _folded(entry: Entry, lane: int, wanted: OperatorLanes) -> tuple[Any, ...]:
    """The same events, in a lane that is there."""
    return (
        wanted.fitting(lane),
        entry.blob,
        entry.events,
        entry.first,
        entry.lane_in_parcel,
        entry.born,
        entry.deaths,
        entry.named,
    )


def _by_key(
    journal: Journal,
    place: Place,
    blobs: Blobs,
    operator: str,
    entry: Entry,
    lane: int,
    wanted: OperatorLanes,
) -> Iterator[tuple[Any, ...]]:
    """The same events, each in the lane of its key: stored anew."""
    stored = blobs.read([entry.blob])[entry.blob]
    rows = rows_of(entry, stored, entry.events)
    table = from_bytes(stored.data).take(rows)
    if wanted.key not in table.column_names:
        yield _folded(entry, lane, wanted)
        return
    births = stored.births.chosen(rows)
    if entry.born is not None:
        births = Births.evenly(entry.events, entry.born)
    lane_of = new_lanes(table, lane, wanted)
    parcel = Parcel.for_lanes(operator, lane_of, births, to_bytes(table))
    topic, partition = topic_of(place, operator), parcel.lane % wanted.lanes
    offset = journal.write(topic, partition, to_record(parcel))
    before: Counter[int] = Counter()
    for piece in pieces(lane_of, entry.named):
        lanes, events = np.unique(piece.lane_of, return_counts=True)
        for number, count in zip(lanes.tolist(), events.tolist(), strict=True):
            first = before[number]
            before[number] += count
            several = number if parcel.lane_of is not None else None
            unit = piece.unit._replace(first=first) if piece.unit else None
            blob = topic, partition, offset
            yield number, blob, count, first, several, None, entry.deaths, unit
