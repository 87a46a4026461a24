"""Filling a state that is nobody's with what another one has kept."""

from __future__ import annotations

from elastream.engines.spark.backends.kafka.commands.base import Command, command
from elastream.engines.spark.backends.kafka.state import (
    Blob,
    Entry,
    Letter,
    State,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.parcels import Unit

UNFINISHED = "an import that was not finished"
"""The pipeline of a state while another is read into it."""


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
