"""The plan, generations and their roles, members, failures and feedback."""

from __future__ import annotations

from elastream.engines.spark.backends.kafka.commands.base import (
    Command,
    acts,
    command,
    name_of,
    note_death,
    remove_member,
)
from elastream.engines.spark.backends.kafka.state import Role, State
from elastream.engines.spark.backends.members import MemberName


@command
def publish(state: State, command: Command) -> None:
    """Make this the newest plan."""
    state.plan = command["plan"]
    state.plan_version += 1
    state.news.append(None)


@command
def new_generation(state: State, command: Command) -> int:
    """Offer roles under the next number."""
    state.generation += 1
    state.roles[state.generation] = [Role((n, number)) for n, number in command["roles"]]
    return state.generation


@command
def take_role(state: State, command: Command) -> MemberName | None:
    """The role that a worker has, or the first that nobody has."""
    roles = state.roles.get(command["generation"], [])
    for wanted in (command["worker"], None):
        for role in roles:
            if role.worker == wanted:
                role.worker = command["worker"]
                return role.name
    return None


@command
def report_ready(state: State, command: Command) -> None:
    """Note that whoever has a role is set up."""
    for role in state.roles.get(command["generation"], []):
        role.ready = role.ready or role.name == name_of(command)


@command
def start(state: State, command: Command) -> None:
    """Let a generation begin; the roles and the failures of all others are gone."""
    state.started = command["generation"]
    state.roles = {state.started: state.roles.get(state.started, [])}
    state.failures = {state.started: state.failures.get(state.started, {})}


@command
def abandon(state: State, command: Command) -> None:
    """Withdraw the roles of a generation, and forget its failures."""
    state.roles.pop(command["generation"], None)
    state.failures.pop(command["generation"], None)


@command
def reassign(state: State, command: Command) -> bool:
    """Have a worker leave its role for a free one."""
    roles = {role.name: role for role in state.roles.get(state.started, [])}
    name, to = name_of(command), command["to"]
    leaving, free = roles.get(name), roles.get((to[0], to[1]))
    if leaving is None or free is None or leaving.worker is None or free.worker is not None:
        return False
    free.worker, free.ready = leaving.worker, False
    _vacate(state, leaving)
    return True


@command
def vacate(state: State, command: Command) -> None:
    """Free roles, whoever has them."""
    names = {(name, number) for name, number in command["names"]}
    for role in state.roles.get(state.started, []):
        if role.name in names:
            _vacate(state, role)


def _vacate(state: State, role: Role) -> None:
    role.worker, role.ready = None, False
    remove_member(state, role.name)


@command
def report_deaths(state: State, command: Command) -> None:
    """Note on what processes may have worked on that they died, and remove their members."""
    for (operator, number), process in command["dead"]:
        if acts(state, (operator, number), process):
            note_death(state, (operator, number), process)
            remove_member(state, (operator, number))


@command
def dismiss(state: State, command: Command) -> None:
    """Nobody acts for these members any more, or for any."""
    names = command["names"]
    for name in list(state.members) if names is None else [(n, r) for n, r in names]:
        remove_member(state, name)
    if names is None:
        state.roles.clear()
        state.failures.clear()
        state.feedback.clear()  # Replicas of another pool may have posted it.
    state.news.append(None)


@command
def beat(state: State, command: Command) -> None:
    """Note that a member is well."""
    if member := state.members.get(name_of(command)):
        member.heartbeat += 1
        member.busy_for = command["busy_for"]


@command
def report_failure(state: State, command: Command) -> None:
    """Note why a member of a generation cannot work."""
    generation = command.get("generation", state.started)  # It was not always said.
    state.failures.setdefault(generation, {})[name_of(command)] = command["error"]


@command
def post(state: State, command: Command) -> None:
    """Let producers know; it replaces what the sender posted of its kind."""
    sender, producers = name_of(command), command["producers"]
    for producer in [None] if producers is None else [(n, r) for n, r in producers]:
        key = producer, sender, command["kind"]
        state.feedback[key] = state.number(), command["content"]
