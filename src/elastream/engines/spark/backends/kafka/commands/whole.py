"""The state as a whole: whose it is, its layout, and what may be deleted."""

from __future__ import annotations

from elastream.engines.spark.backends.kafka.commands.base import Command, command
from elastream.engines.spark.backends.kafka.state import (
    Blob,
    Driver,
    Entry,
    Lane,
    Letter,
    State,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.parcels import Unit

UNFINISHED = "an import that was not finished"
"""The pipeline of a state while another is read into it."""


@command
def claim(state: State, command: Command) -> str:
    """Give the state to a pipeline, unless it has one; the result is which."""
    if state.pipeline is None:
        state.pipeline = command["pipeline"]
    return state.pipeline


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
def own(state: State, command: Command) -> tuple[str, str, int] | None:
    """Be the driver, if nobody is, or instead of one that gave no sign of life; else who is."""
    driver, instead_of = state.driver, command["instead_of"]
    if driver is None or [driver.process, driver.beat] == instead_of:
        state.driver = Driver(command["process"], command["who"])
        return None
    return driver.process, driver.who, driver.beat


@command
def renew(state: State, command: Command) -> bool:
    """Give a sign of life; False if another is the driver now."""
    if state.driver is None or state.driver.process != command["process"]:
        return False
    state.driver.beat += 1
    return True


@command
def disown(state: State, command: Command) -> None:
    """Be the driver no longer."""
    if state.driver is not None and state.driver.process == command["process"]:
        state.driver = None


@command
def trim(state: State, command: Command) -> None:
    """Records below an offset will be deleted: no later commit may need them."""
    for topic, partition, offset in command["upto"]:
        key = topic, partition
        state.trimmed[key] = max(offset, state.trimmed.get(key, 0))


@command
def begin_restore(state: State, command: Command) -> bool:
    """Lay out the lanes of a state that is nobody's, and keep everybody else out meanwhile."""
    if state.pipeline is not None:
        return False
    state.pipeline = UNFINISHED
    for operator, of in command["layout"].items():
        layout = state.layout[operator] = OperatorLanes(*of)
        for lane in [SHARED_LANE] if layout.shared else range(layout.lanes):
            state.lane(operator, lane)
    return True


@command
def restore(state: State, command: Command) -> None:
    """Add some of what another state has kept."""
    for kind, values, blob in command["pieces"]:
        kept = state.keep(Blob(*blob)) if blob else Blob("", 0, 0)
        match kind, values:
            case "position", [output, consumed, newest]:
                state.consumed[output] = consumed
                state.numbers = max(state.numbers, newest)
            case "admitted", [source, number]:
                state.admitted[source] = number
            case "counted", [operator, replica, counts]:
                state.counts_of((operator, replica)).add(counts)
            case "waiting", [operator, lane, events, deaths, unit]:
                named = Unit(*unit) if unit else None
                entry = Entry(state.number(), kept, events, deaths=deaths, unit=named)
                state.put(operator, lane, entry)
            case "output", [output, number, events]:
                state.put(output, 0, Entry(number, kept, events))
            case "letter", [operator, events, error, lane, time]:
                letter = Letter(operator, events, error, lane, time, kept)
                state.letters[state.number()] = letter


@command
def end_restore(state: State, command: Command) -> None:
    """From now on it is the state of a pipeline."""
    if state.pipeline == UNFINISHED:
        state.pipeline = command["pipeline"]
