"""The layout of lanes: replaced, cleared, and what of their records may be deleted."""

from __future__ import annotations

from elastream.engines.spark.backends.kafka.commands.base import Command, command
from elastream.engines.spark.backends.kafka.state import (
    Blob,
    Entry,
    Lane,
    State,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.parcels import Unit


@command
def lay_out(state: State, command: Command) -> None:
    """Replace an operator's lanes, and what waits in them."""
    operator = command["operator"]
    layout = OperatorLanes(*command["layout"])
    before = state.lanes.get(operator, {}).values()
    ownership = max((lane.ownership for lane in before), default=0) + 1
    numbers = [SHARED_LANE] if layout.shared else range(layout.lanes)
    state.layout[operator] = layout
    state.lanes[operator] = {number: Lane(ownership=ownership) for number in numbers}
    # Up to version 4, units lost their names.
    for lane, blob, events, first, in_parcel, born, deaths, *named in command["waiting"]:
        kept = state.keep(Blob(*blob))
        entry = Entry(state.number(), kept, events, first, in_parcel, born, deaths)
        entry.unit = Unit(*named[0]) if named and named[0] else None
        state.put(operator, lane, entry)


@command
def clear(state: State, command: Command) -> int:
    """Drop what waits for an operator; whoever works on some of it is refused."""
    operator = command["operator"]
    dropped = 0
    for number, lane in state.lanes.get(operator, {}).items():
        dropped += lane.waiting
        lane.entries.clear()
        lane.waiting = 0
        lane.ownership += number != SHARED_LANE
    state.counts_of((operator, 0)).numbers[2] += dropped
    state.news.append(operator)
    return dropped


@command
def trim(state: State, command: Command) -> None:
    """Records below an offset will be deleted: no later commit may need them."""
    for topic, partition, offset in command["upto"]:
        key = topic, partition
        state.trimmed[key] = max(offset, state.trimmed.get(key, 0))
