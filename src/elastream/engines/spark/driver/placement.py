"""Placement: which replicas are active, and which lanes they own.

Any replicas that have joined can be active, not only the first ones of a pool. A plan is published
only when it changes something.

Where there are fewer workers than replicas, those that are inactive are given the roles that are
needed, and the bottleneck gets them first; one that is active stops being so, finishes its work,
and is given another role after that. When an executor is gone, its workers have died, and others
get their roles at once. Active replicas are on as few executors as possible: others are idle.

An executor that is to go is cleared first: others get ready in the roles that matter there, then
its replicas hand over their lanes, and what is left has nothing to do.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

from elastream.core.allotment import allotted
from elastream.core.lanes import Owners, assign, lane_weights
from elastream.core.topology import Topology
from elastream.engines.spark.backends.board import Board, LanePlan
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import LaneState, LaneStates
from elastream.engines.spark.backends.members import Attendance, MemberName
from elastream.engines.spark.driver.worker_places import Places

log = logging.getLogger(__name__)

NOBODY = -1
KEPT = 0.9
"""How much of what a lane weighed is kept at every review."""
SOURCE = 1_000
"""A source keeps its executor as much as this many replicas do: while it moves, its input waits."""


def nobody(members: Mapping[MemberName, Attendance]) -> frozenset[MemberName]:
    """No member is silent."""
    return frozenset()


class Placement:
    """Keeps the plan that workers follow.

    Args:
        topology: The pipeline.
        layout: The lanes of every operator.
        board: Where plans are published; nobody else uses this connection at the same time.
        lanes: Looks up what waits where, on the same connection.
        silent: Of some members, those that have not been heard of for too long.
    """

    def __init__(
        self,
        topology: Topology,
        layout: Mapping[str, OperatorLanes],
        board: Board,
        lanes: Callable[[], LaneStates],
        silent: Callable[[Mapping[MemberName, Attendance]], frozenset[MemberName]] = nobody,
    ) -> None:
        self._topology = topology
        self._layout = layout
        self._board = board
        self._lanes = lanes
        self._silent = silent
        self._lock = Lock()
        self._wanted = {name: of.minimum for name, of in topology.by_name.items()}
        self._granted: dict[str, int] = {}
        """How many of them each operator gets of the workers that are there."""
        self._lost_sources: set[MemberName] = set()
        """Those whose workers are gone: nobody is needed more."""
        self._places = Places(0, {}, frozenset())
        self._where: dict[MemberName, str] = {}
        """The executors of members, as far as they are known."""
        self._acting: dict[MemberName, str] = {}
        """The processes of members, when it was last seen where they are."""
        self._leaving: frozenset[str] = frozenset()
        """Executors that are to go."""
        self._left: frozenset[str] = frozenset()
        """Those that were to go since we last looked who is there, and are not any more."""
        self._plan = self._published = LanePlan()
        self._before: LaneStates = {}
        self._arriving: dict[str, dict[int, float]] = {}
        """Events per review and lane, smoothed: a lane must not move because of a moment."""

    @property
    def plan(self) -> LanePlan:
        """The newest one."""
        return self._plan

    @property
    def wanted(self) -> Mapping[str, int]:
        """How many replicas each operator should have."""
        return dict(self._wanted)

    def want(self, replicas: Mapping[str, int]) -> None:
        """Activate this many from now on, as far as they have joined."""
        with self._lock:
            self._wanted |= replicas
            self._publish_changes(self._lanes())

    def close_sources(self) -> None:
        """Let no more events in, even after a change of generations."""
        with self._lock:
            self._plan = replace(self._plan, admits=False)
            self._publish()

    def halt(self, halted: bool) -> None:
        """Stop replicas from taking events, or let them continue; sources do not notice."""
        with self._lock:
            self._plan = replace(self._plan, halted=halted)
            self._publish()

    def review(self) -> None:
        """Look again who has joined, and how heavy lanes are; give the free roles that matter."""
        with self._lock:
            lanes = self._lanes()
            self._learn(lanes)
            if self._plan.active:
                self._publish_changes(lanes)

    def follow(self, places: Places) -> None:
        """Note where workers are, and let others have the roles of those that are gone."""
        with self._lock:
            known = self._places.executors if self._places.generation == places.generation else {}
            # A task that has died alone comes back where it was: whoever joins then notes a death.
            gone = {worker for worker, executor in known.items() if executor not in places.alive}
            roles = self._board.roles()
            lost = [role for role, worker in roles.items() if worker in gone]
            if lost:
                executors = {known[worker] for worker in gone}
                expected = executors <= self._leaving | self._left
                level = logging.INFO if expected else logging.WARNING
                told = ", ".join(sorted(executors))
                log.log(level, "the executor %s is gone, and with it %s", told, lost)
                # One of their events may have killed the executor.
                self._board.report_deaths(
                    {name: of for name, of in self._acting.items() if self._role_of(name) in lost}
                )
                # Spark has started some elsewhere already: they keep their roles, and get ready.
                vacant = [role for role in lost if roles[role] not in places.executors]
                self._board.vacate(vacant)
                self._lost_sources |= {
                    one for one in vacant if one[0] not in self._topology.by_name
                }
            self._left = frozenset()
            self._places = places
            self._acting = {name: of.process for name, of in self._board.members().items()}
            self._where = {
                role: places.executors[worker]
                for role, worker in roles.items()
                if worker is not None and worker in places.executors
            }
            if (lost or self._leaving) and self._plan.active:
                self._publish_changes(self._lanes())

    def _role_of(self, member: MemberName) -> MemberName:
        """The role of the worker that acts for a member; inside a chain, it is that of its head."""
        name, number = member
        while name in self._layout and (before := self._layout[name].chained_to):
            name = before
        return name, number

    def clear(self, executors: Collection[str]) -> None:
        """Use these as little as possible from now on, and all others again."""
        with self._lock:
            if self._leaving == frozenset(executors):
                return
            self._left |= self._leaving
            self._leaving = frozenset(executors)
            if self._plan.active:
                self._publish_changes(self._lanes())

    def occupation(self) -> Occupation:
        """What executors do for the pipeline."""
        with self._lock:
            joined, holding = self._board.members(), _holding(self._lanes())
            where, plan, workers = dict(self._where), self._plan, self._places.executors
        needed: Counter[str] = Counter()
        for role, executor in where.items():
            name, number = role
            if name not in self._topology.by_name:
                needed[executor] += SOURCE
            elif (
                number in plan.active.get(name, ())
                or role in holding
                or (role in joined and joined[role].busy_for > 0)
            ):
                needed[executor] += 1
        return Occupation(
            needed=needed,
            workers=Counter(workers.values()),
            joined=frozenset(executor for role, executor in where.items() if role in joined),
        )

    def _learn(self, lanes: LaneStates) -> None:
        for operator, states in lanes.items():
            earlier = self._before.get(operator, {})
            smoothed = self._arriving.setdefault(operator, {})
            for lane, state in states.items():
                arrived = state.arrived - (earlier[lane].arrived if lane in earlier else 0)
                smoothed[lane] = KEPT * smoothed.get(lane, 0.0) + (1 - KEPT) * arrived
        self._before = lanes

    def _publish_changes(self, lanes: LaneStates) -> None:
        joined = self._board.members()
        members: dict[str, list[int]] = {name: [] for name in self._topology.by_name}
        for name, number in joined.keys() - self._silent(joined):
            if name in members:
                members[name].append(number)
        if self._lost_sources:
            roles = self._board.roles()
            self._lost_sources = {one for one in self._lost_sources if roles.get(one, 0) is None}
        staying = {
            name: [number for number in numbers if not self._leaves((name, number))]
            for name, numbers in members.items()
        }
        homeless = self._lost_sources | {
            (source.name, 0)
            for source in self._topology.sources
            if self._where.get((source.name, 0)) in self._leaving
        }
        self._granted = self._grant(staying, joined, len(homeless))
        crowds = Counter(
            self._where.get((name, number))
            for name, numbers in self._plan.active.items()
            for number in numbers
        )
        active = {name: self._chosen(name, of, crowds) for name, of in members.items()}
        lacking = any(len(numbers) < self._granted[name] for name, numbers in staying.items())
        if lacking or homeless:
            spare = self._spare(staying, active, crowds, lanes)
            self._fill_vacancies(staying, joined, spare, homeless, _holding(lanes))
        owners = {
            name: self._owners(name, replicas, lanes.get(name, {}))
            for name, replicas in active.items()
            if not self._layout[name].shared
        }
        owners |= dict.fromkeys(active.keys() - owners.keys(), ())
        if (active, owners) != (self._plan.active, self._plan.owners):
            self._plan = replace(self._plan, active=active, owners=owners)
        self._publish()

    def _publish(self) -> None:
        """Publish the newest plan, unless that has happened; if it fails, the next review does."""
        if self._plan is not self._published:
            self._board.publish(self._plan)
            self._published = self._plan

    def _leaves(self, role: MemberName) -> bool:
        """Whether it is on an executor that is to go; whoever has just come may be."""
        return bool(self._leaving) and self._where.get(role, "") in {"", *self._leaving}

    def _grant(
        self,
        members: Mapping[str, Sequence[int]],
        joined: Collection[MemberName],
        homeless: int,
    ) -> dict[str, int]:
        """How many replicas each operator gets: what is wanted, if there are workers for it."""
        workers = sum(map(len, members.values())) - homeless
        if workers <= 0 or sum(self._wanted.values()) <= workers:
            return dict(self._wanted)
        roles = self._board.roles()
        free = Counter(
            role[0] for role, worker in roles.items() if worker is None or self._leaves(role)
        )
        coming = self._coming(roles, joined)
        # Nobody gives up a worker for a role that somebody has, but does not act in at the moment.
        possible = {
            name: min(self._wanted[name], len(numbers) + coming[name] + free[name])
            for name, numbers in members.items()
        }
        minima = {name: of.minimum for name, of in self._topology.by_name.items()}
        workers += sum(coming[name] for name in members)
        return allotted(possible, minima, self._granted, workers)

    def _chosen(
        self, operator: str, joined: Sequence[int], crowds: Mapping[str | None, int]
    ) -> tuple[int, ...]:
        """As many as it gets: first those that are active, then those on the busiest executors.

        Before anybody has joined, they are chosen among all. Those on executors that are to go stay
        active only until others can take their place.
        """
        candidates = joined or range(self._topology.by_name[operator].pool)
        before = frozenset(self._plan.active.get(operator, ()))

        def rank(number: int) -> tuple[bool, bool, int, int]:
            crowd = crowds.get(self._where.get((operator, number)), 0)
            return self._leaves((operator, number)), number not in before, -crowd, number

        # If all are silent there is nobody to grant, and lanes wait with one until they are back.
        most = max(self._granted[operator], 1)
        return tuple(sorted(sorted(candidates, key=rank)[:most]))

    def _owners(
        self, operator: str, active: tuple[int, ...], states: Mapping[int, LaneState]
    ) -> Owners:
        lanes, keyed = self._layout[operator].lanes, self._layout[operator].key is not None
        before = self._plan.owners.get(operator) or (NOBODY,) * lanes
        if not keyed and set(before) == set(active):
            # Producers distribute events evenly; only a key makes a lane heavy for good.
            return before
        queued = {lane: float(state.waiting) for lane, state in states.items()}
        arriving = self._arriving.get(operator, {})
        return assign(before, active, lane_weights(queued, arriving, lanes, keyed))

    def _spare(
        self,
        members: Mapping[str, Sequence[int]],
        active: Mapping[str, Collection[int]],
        crowds: Mapping[str | None, int],
        lanes: LaneStates,
    ) -> list[MemberName]:
        """Those that are inactive and have finished; those on the busiest executors come last."""
        holding = _holding(lanes)
        spare = [
            (name, number)
            for name, numbers in members.items()
            for number in sorted(numbers)
            if number not in active[name] and number not in self._plan.active.get(name, ())
        ]
        free = [role for role in spare if role not in holding]
        return sorted(free, key=lambda role: crowds.get(self._where.get(role), 0))

    def _fill_vacancies(
        self,
        members: Mapping[str, Sequence[int]],
        joined: Collection[MemberName],
        spare: list[MemberName],
        homeless: Collection[MemberName],
        holding: Collection[tuple[str, int | None]],
    ) -> None:
        """Give the free roles of sources and of operators that lack replicas to spare workers."""
        for source in sorted(homeless)[: len(spare)]:
            self._move(spare.pop(), source)
        roles = self._board.roles()
        coming = self._coming(roles, joined)
        there = {name: len(numbers) + coming[name] for name, numbers in members.items()}
        for name in sorted(there, key=lambda each: there[each] / self._wanted[each]):
            mine = [role for role in roles if role[0] == name]
            free = [role for role in mine if roles[role] is None and role not in joined]
            active = self._plan.active.get(name, ())
            # Some may be in the hands of workers that are to go, and do nothing there.
            free += [
                role
                for role in mine
                if roles[role] is not None
                and self._leaves(role)
                and role not in holding
                and role[1] not in active
            ]
            missing = max(self._granted[name] - there[name], 0)
            for role in free[:missing]:
                if not spare:
                    return
                self._move(spare.pop(), role)

    def _move(self, member: MemberName, to: MemberName) -> None:
        """Let the worker of a spare member act in another role.

        Whoever has that role on an executor that is to go is dismissed. Should it take the role
        again before the other one does, the next look tries again.
        """
        if to in self._where:
            self._board.vacate([to])
        if self._board.reassign(member, to):
            place = self._where.pop(member, None)
            self._where.pop(to, None)
            if place is not None:
                self._where[to] = place

    def _coming(
        self, roles: Mapping[MemberName, int | None], joined: Collection[MemberName]
    ) -> Counter[str]:
        """How many workers of each operator have a role, and have not joined yet."""
        return Counter(
            role[0]
            for role, worker in roles.items()
            if worker is not None
            and role not in joined
            and self._where.get(role) not in self._leaving
        )


class Occupation(NamedTuple):
    """What executors do for a pipeline, each by its name."""

    needed: Mapping[str, int]
    """Replicas that are active or have work to finish, and sources, each counted `SOURCE` times."""
    workers: Mapping[str, int]
    """Its workers, whatever they do."""
    joined: frozenset[str]
    """Where somebody is ready to work."""


def _holding(lanes: LaneStates) -> set[tuple[str, int | None]]:
    """The members that own lanes."""
    return {(name, of.owner) for name, states in lanes.items() for of in states.values()}
