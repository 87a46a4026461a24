"""The way in from DataFrames and the way out to them."""

from __future__ import annotations

from elastream.engines.spark.backends.kafka.commands.base import Command, command, is_trimmed
from elastream.engines.spark.backends.kafka.state import Blob, Entry, State


@command
def stage(state: State, command: Command) -> bool:
    """Keep what a task of a query has; False if it must be sent again."""
    if is_trimmed(state, command["blob"]):
        return False
    names = state.staged.setdefault(command["source"], {})
    names.setdefault(command["name"], []).append(
        (command["events"], state.keep(Blob(*command["blob"])))
    )
    return True


@command
def admit(state: State, command: Command) -> bool | list[int]:
    """Let a batch of a query in, once; what should be there and what is, if it is not."""
    source, staged = command["source"], command["staged"]
    there = state.staged.setdefault(source, {})
    if command["number"] <= state.admitted.get(source, -1):
        for name in staged:
            there.pop(name, None)
        return False
    for name, events in staged.items():
        found = sum(count for count, _ in there.get(name, ()))
        if found != events:
            return [events, found]
    for name in staged:
        for events, blob in there.get(name, ()):
            state.put(source, 0, Entry(state.number(), blob, events, born=command["time"]))
    there.clear()
    state.counts_of((source, 0)).numbers[0] += sum(staged.values())
    state.admitted[source] = command["number"]
    state.arrivals.append((source, 0))
    return True


@command
def discard(state: State, command: Command) -> None:
    """Forget what was staged for a source."""
    state.staged.pop(command["source"], None)


@command
def consume(state: State, command: Command) -> None:
    """Forget what a query has read of an output."""
    operator, upto = command["operator"], command["upto"]
    lane = state.lane(operator, 0)
    for number in [number for number in lane.entries if number <= upto]:
        lane.remove(number, lane.entries[number].events)
    state.consumed[operator] = max(upto, state.consumed.get(operator, 0))
