"""Parcels as records: one for every parcel, whatever lanes it is for."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elastream.engines.spark.backends.encoding import requests_from_json, requests_to_json
from elastream.engines.spark.backends.kafka.state import Entry
from elastream.engines.spark.backends.parcels import Parcel, Place, Requests, Taken
from elastream.engines.spark.births import Births
from elastream.errors import EngineError

_HEAD = struct.Struct("<BIII")
_FORMAT = 1


class Stored(NamedTuple):
    """A parcel, as it is read back."""

    births: Births
    lane_of: NDArray[np.uint16] | None
    requests: Requests | None
    data: bytes


def to_record(parcel: Parcel) -> bytes:
    """Its parts, one after the other."""
    births = parcel.births.to_bytes()
    lanes = b"" if parcel.lane_of is None else parcel.lane_of.astype("<u2").tobytes()
    requests = requests_to_json(parcel.requests).encode() if parcel.requests else b""
    head = _HEAD.pack(_FORMAT, len(births), len(lanes), len(requests))
    return b"".join((head, births, lanes, requests, parcel.data))


def from_record(record: bytes) -> Stored:
    """What `to_record` made."""
    version, births, lanes, requests = _HEAD.unpack_from(record)
    if version != _FORMAT:
        raise EngineError(f"events are stored in format {version}, and {_FORMAT} is known")
    one = _HEAD.size
    two, three = one + births, one + births + lanes
    four = three + requests
    return Stored(
        Births.from_bytes(record[one:two]),
        np.frombuffer(record[two:three], dtype="<u2") if lanes else None,
        requests_from_json(record[three:four].decode()) if requests else None,
        record[four:],
    )


def parts_of(parcel: Parcel) -> tuple[list[tuple[int, int]], bool]:
    """How many events are for which lane, and whether there are several lanes."""
    if parcel.lane_of is None:
        return [(parcel.lane, parcel.events)], False
    lanes, events = np.unique(parcel.lane_of, return_counts=True)
    return list(zip(lanes.tolist(), events.tolist(), strict=True)), True


def taken_from(parts: Sequence[tuple[Entry, int, int]], stored: Stored) -> Taken:
    """Some entries of one parcel, as a member works on them."""
    places = tuple(
        Place(entry.number, lane, count, count == entry.events) for entry, lane, count in parts
    )
    chosen = np.concatenate([rows_of(entry, stored, count) for entry, _, count in parts])
    chosen.sort()
    born = parts[0][0].born
    births = stored.births if born is None else Births.evenly(stored.births.events, born)
    deaths = max(entry.deaths for entry, _, _ in parts)
    if len(chosen) == births.events:
        return Taken(stored.data, len(chosen), births, places, None, stored.requests, deaths=deaths)
    return Taken(
        stored.data,
        len(chosen),
        births.chosen(chosen),
        places,
        chosen,
        stored.requests,
        deaths=deaths,
    )


def rows_of(entry: Entry, stored: Stored, count: int) -> NDArray[np.intp]:
    """Which rows of a parcel an entry's next events are."""
    if entry.lane_in_parcel is None or stored.lane_of is None:
        return np.arange(entry.first, entry.first + count)
    rows = np.flatnonzero(stored.lane_of == entry.lane_in_parcel)
    return rows[entry.first : entry.first + count]
