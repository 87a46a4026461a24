"""How commands are found by name, and what several of them need."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from elastream.engines.spark.backends.kafka.state import Lane, State
from elastream.engines.spark.backends.kafka.versions import check_version
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.members import MemberName

Command = dict[str, Any]
"""Its name is under `do`, its version under `version`, and its arguments under their names."""
SUSPECTS = 8
"""How many batches at the head of a lane a process that died may have taken at once."""
_COMMANDS: dict[str, Callable[[State, Command], Any]] = {}


def apply(state: State, command: Command) -> Any:
    """Do it; returns the result that the process which appended it waits for."""
    check_version(command)
    state.arrivals.clear()
    state.news.clear()
    return _COMMANDS[command["do"]](state, command)


def command(function: Callable[[State, Command], Any]) -> Callable[[State, Command], Any]:
    """Let a function be found by its name."""
    _COMMANDS[function.__name__] = function
    return function


def is_trimmed(state: State, blob: list[Any]) -> bool:
    """Whether a record may have been deleted."""
    topic, partition, offset = blob
    return bool(offset < state.trimmed.get((topic, partition), 0))


def name_of(command: Command) -> MemberName:
    """The member that a command is about."""
    operator, number = command["name"]
    return operator, number


def acts(state: State, name: MemberName, process: str) -> bool:
    """Whether a process acts for a member."""
    member = state.members.get(name)
    return member is not None and member.process == process


def note_death(state: State, name: MemberName, process: str) -> None:
    """A member's process has died: it may have been at the first events of its lanes."""
    for number, lane in state.lanes.get(name[0], {}).items():
        if number == SHARED_LANE:
            for entry in lane.entries.values():
                entry.deaths += entry.taken_by == process
        elif lane.owner == name[1]:
            for entry in islice(lane.entries.values(), SUSPECTS):
                entry.deaths += 1


def remove_member(state: State, name: MemberName) -> None:
    """Nobody acts for a member any more, and its lanes are free."""
    lanes = state.lanes.get(name[0], {})
    if member := state.members.pop(name, None):
        free_taken(lanes, member.process)
    for lane in lanes.values():
        if lane.owner == name[1]:
            lane.give(None)
    state.news.append(name[0])


def free_taken(lanes: dict[int, Lane], process: str) -> None:
    """What a process took from the shared lane is there for others again."""
    for entry in lanes[SHARED_LANE].entries.values() if SHARED_LANE in lanes else ():
        if entry.taken_by == process:
            entry.taken_by = None
