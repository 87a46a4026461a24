"""Who may take from which lane, and commits."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from elastream.engines.spark.backends.kafka.commands.base import (
    Command,
    acts,
    command,
    free_taken,
    is_trimmed,
    name_of,
    note_death,
)
from elastream.engines.spark.backends.kafka.state import Blob, Entry, Lane, Letter, Member, State
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Unit

SLACK = 1.5
"""A stored batch is cut when it is this many times as large as what was asked for."""


@command
def join(state: State, command: Command) -> dict[int, int] | None:
    """Act for a member; the ownership numbers of its lanes, or None if it was superseded."""
    name, generation = name_of(command), command["generation"]
    before = state.members.get(name)
    if before and before.generation > generation:
        return None
    lanes = state.lanes.get(name[0], {})
    mine = {n: lane for n, lane in lanes.items() if lane.owner == name[1] and n != SHARED_LANE}
    another = before and before.process != command["process"]  # Else the request came twice.
    if before and another and before.generation == generation:
        note_death(state, name, before.process)
    if before:
        free_taken(lanes, before.process)
        state.news.append(name[0])
    state.failures.get(generation, {}).pop(name, None)
    state.members[name] = Member(command["process"], generation, sequence=command["sequence"])
    return {number: lane.give(name[1]) for number, lane in mine.items()}


@command
def hold(state: State, command: Command) -> dict[int, int] | None:
    """Release and take hold of lanes; those that are held, with their ownership numbers."""
    name, wanted = name_of(command), command["wanted"]
    if not acts(state, name, command["process"]):
        return None
    forced = command["by_force"]
    if isinstance(forced, bool):  # Up to version 5, it was all or none of them.
        forced = wanted if forced else ()
    lanes, held = state.lanes.get(name[0], {}), {}
    for number, lane in lanes.items():
        if number == SHARED_LANE:
            continue
        if number not in wanted:
            if lane.owner == name[1]:
                lane.give(None)
                state.news.append(name[0])
        elif lane.owner in (None, name[1]) or number in forced:
            known = command["held"].get(str(number))
            same = lane.owner == name[1] and lane.ownership == known
            held[number] = lane.ownership if same else lane.give(name[1])
    return held


@command
def take_shared(state: State, command: Command) -> tuple[list[tuple[int, int]], bool]:
    """Mark the next events of the shared lane as taken; which, and whether there are more."""
    name, process = name_of(command), command["process"]
    lane = state.lanes.get(name[0], {}).get(SHARED_LANE)
    if lane is None or not acts(state, name, process):
        return [], False
    free = takeable(lane, process, command.get("working", ()))
    parts, more = share(free, command["most"], "unit" in command)
    for place, (entry, count) in enumerate(parts):
        entry.taken_by = process
        if "unit" in command:
            entry.name(f"{command['unit']}-{place}", count)
    return [(entry.number, count) for entry, count in parts], more


def takeable(lane: Lane, process: str, working: Collection[int]) -> list[Entry]:
    """What a process can take from the shared lane: what nobody works on.

    That may have been taken in its own name, if it never learnt of it: the broker was away.
    """
    return [
        entry
        for entry in lane.entries.values()
        if entry.taken_by is None or (entry.taken_by == process and entry.number not in working)
    ]


@command
def name_units(state: State, command: Command) -> list[tuple[int, Unit]]:
    """Give the next events of some entries names that they keep; which entries, and the units."""
    name, process = name_of(command), command["process"]
    lanes = state.lanes.get(name[0], {})
    if not acts(state, name, process):
        return []
    named = []
    for place, (lane, number, events, owned) in enumerate(command["places"]):
        if _ours(lanes, process, lane, number, events, owned):
            unit = lanes[lane].entries[number].name(f"{command['unit']}-{place}", events)
            named.append((number, unit))
    return named


def share(
    entries: list[Entry], most: int, named: bool = False
) -> tuple[list[tuple[Entry, int]], bool]:
    """The first of these, with about as many events as asked for, and whether some are left.

    What has a name, where names are wanted, is cut as it was.
    """
    parts: list[tuple[Entry, int]] = []
    events = 0
    for entry in entries:
        if parts and events + entry.events > most:
            return parts, True
        count = entry.events if parts else _part(entry.events, most)
        if named and entry.named:
            count = entry.named.events
        parts.append((entry, count))
        events += count
        if count < entry.events:
            return parts, True
    return parts, False


@command
def retry(state: State, command: Command) -> int:
    """Put dead letters at the ends of their lanes; how many were still there."""
    again = 0
    # In version 1, they went where they came from.
    lanes = command.get("lanes", [None] * len(command["numbers"]))
    for number, named in zip(command["numbers"], lanes, strict=True):
        letter = state.letters.pop(number, None)
        if letter is None:
            continue
        again += 1
        lane = letter.lane if named is None else named
        entry = Entry(state.number(), letter.blob, letter.events, born=command["time"])
        state.put(letter.operator, state.fitting(letter.operator, lane), entry)
    return again


def _part(events: int, most: int) -> int:
    """All of a batch, or one of the equal parts that it is cut into."""
    parts = 1 if events <= SLACK * most else -(-events // most)
    return -(-events // parts)


@command
def commit(state: State, command: Command) -> str:
    """Replace events by their results: `done`, `refused`, or `again` with new records."""
    name, process = name_of(command), command["process"]
    member = state.members.get(name)
    if member is None or member.process != process:
        return "refused"
    if command["sequence"] <= member.sequence:
        return "done"
    lanes = state.lanes.get(name[0], {})
    if not all(_ours(lanes, process, *place) for place in command["places"]):
        return "refused"
    results, dead = command["results"], command["dead"]
    if any(is_trimmed(state, blob) for _, blob, *_ in [*results, *dead]):
        return "again"
    member.sequence = command["sequence"]
    for lane, number, events, _ in command["places"]:
        lanes[lane].remove(number, events)
    for operator, blob, parts, several in results:
        kept = state.keep(Blob(*blob))
        for lane, events in parts:
            entry = Entry(state.number(), kept, events, 0, lane if several else None)
            state.put(operator, lane, entry)
    for operator, blob, events, error, lane, time in dead:
        letter = Letter(operator, events, error, lane, time, state.keep(Blob(*blob)))
        state.letters[state.number()] = letter
    if state.keeps_counts:
        _count(state, name, command["counts"])
    return "done"


def _count(state: State, name: MemberName, told: str | dict[str, Any]) -> None:
    # Up to version 3, it was not text: everybody had to read it.
    counts = json.loads(told) if isinstance(told, str) else told
    state.counts_of(name).add(counts)
    for operator, of in counts.get("chained", {}).items():
        state.counts_of((operator, name[1])).add(of)


def _ours(
    lanes: dict[int, Lane], process: str, lane: int, number: int, events: int, owned: int
) -> bool:
    """Whether events are still there, and in a lane that has not changed hands."""
    entry = lanes[lane].entries.get(number) if lane in lanes else None
    if entry is None or entry.events < events:
        return False
    if lane == SHARED_LANE:
        return entry.taken_by == process
    return lanes[lane].ownership == owned
