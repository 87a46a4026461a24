"""Placement: which replicas are active, and the plan that workers follow.

Any replicas that have joined can be active, not only the first ones of a pool; those that are
active are on as few executors as possible, so that others are idle. Who acts as which replica is
the matter of `roles`; which lanes it owns, of `lane_owners`. A plan is published only when it
changes something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

from elastream.core.topology import Topology
from elastream.engines.spark.backends.base import Ownership
from elastream.engines.spark.backends.board import Board, LanePlan
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import LaneStates
from elastream.engines.spark.backends.members import Attendance, MemberName
from elastream.engines.spark.driver.lane_owners import LaneOwners
from elastream.engines.spark.driver.roles import Roles
from elastream.engines.spark.driver.worker_places import Places

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
        ownership: Of the state. When it is lost, the board is another driver's: nothing is written
            there any more.
    """

    def __init__(
        self,
        topology: Topology,
        layout: Mapping[str, OperatorLanes],
        board: Board,
        lanes: Callable[[], LaneStates],
        silent: Callable[[Mapping[MemberName, Attendance]], frozenset[MemberName]] = nobody,
        ownership: Ownership | None = None,
    ) -> None:
        self._topology = topology
        self._board = board
        self._lanes = lanes
        self._silent = silent
        self._ownership = ownership or Ownership()
        self._lock = Lock()
        self._wanted = {name: of.minimum for name, of in topology.by_name.items()}
        self._roles = Roles(topology, layout, board)
        self._owners = LaneOwners(layout)
        self._plan = self._published = LanePlan()
        self._sources_closed = False

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
        """Let no more events in, even after a change of generations.

        What a source is about to send is refused: it has to join again, and sees the plan then. One
        that has failed sends nothing, and would no longer say why.
        """
        with self._lock:
            if self._sources_closed or self._ownership.lost:
                return
            self._plan = replace(self._plan, admits=False)
            self._publish()
            sources = {(source.name, 0) for source in self._topology.sources}
            self._board.dismiss(sorted(sources - self._board.failures().keys()))
            self._sources_closed = True

    def halt(self, halted: bool) -> None:
        """Stop replicas from taking events, or let them continue; sources do not notice."""
        with self._lock:
            self._plan = replace(self._plan, halted=halted)
            self._publish()

    def review(self) -> None:
        """Look again who has joined, and how heavy lanes are; give the free roles that matter."""
        with self._lock:
            lanes = self._lanes()
            self._owners.learn(lanes)
            if self._plan.active:
                self._publish_changes(lanes)

    def follow(self, places: Places) -> None:
        """Note where workers are, and let others have the roles of those that are gone."""
        with self._lock:
            if self._ownership.lost:
                return
            if self._roles.follow(places) and self._plan.active:
                self._publish_changes(self._lanes())

    def clear(self, executors: Collection[str]) -> None:
        """Use these as little as possible from now on, and all others again."""
        with self._lock:
            if self._roles.clear(executors) and self._plan.active:
                self._publish_changes(self._lanes())

    def occupation(self) -> Occupation:
        """What executors do for the pipeline."""
        with self._lock:
            joined, holding = self._board.members(), _holding(self._lanes())
            where, plan, workers = dict(self._roles.executors), self._plan, self._roles.workers
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

    def _publish_changes(self, lanes: LaneStates) -> None:
        if self._ownership.lost:
            return
        joined = self._board.members()
        members: dict[str, list[int]] = {name: [] for name in self._topology.by_name}
        for name, number in joined.keys() - self._silent(joined):
            if name in members:
                members[name].append(number)
        staying = {
            name: [number for number in numbers if not self._roles.leaves((name, number))]
            for name, numbers in members.items()
        }
        homeless = len(self._roles.homeless_sources())
        granted = self._roles.grant(self._wanted, staying, joined, homeless)
        at_work = {(name, of) for name, numbers in self._plan.active.items() for of in numbers}
        crowds = Counter(self._roles.executors.get(role) for role in at_work)
        active = {
            name: self._chosen(name, of, granted[name], crowds) for name, of in members.items()
        }
        if homeless or any(len(of) < granted[name] for name, of in staying.items()):
            busy = at_work | _holding(lanes)
            spare = self._spare(staying, active, busy, crowds)
            self._roles.fill_vacancies(self._wanted, staying, joined, spare, busy)
        owners = {
            name: self._owners.assigned(
                name, replicas, self._plan.owners.get(name), lanes.get(name, {})
            )
            for name, replicas in active.items()
        }
        if (active, owners) != (self._plan.active, self._plan.owners):
            self._plan = replace(self._plan, active=active, owners=owners)
        self._publish()

    def _publish(self) -> None:
        """Publish the newest plan, unless that has happened; if it fails, the next review does."""
        if self._plan is not self._published and not self._ownership.lost:
            self._board.publish(self._plan)
            self._published = self._plan

    def _chosen(
        self,
        operator: str,
        joined: Sequence[int],
        granted: int,
        crowds: Mapping[str | None, int],
    ) -> tuple[int, ...]:
        """As many as it gets: first those that are active, then those on the busiest executors.

        Before anybody has joined, they are chosen among all. Those on executors that are to go stay
        active only until others can take their place.
        """
        candidates = joined or range(self._topology.by_name[operator].pool)
        before = frozenset(self._plan.active.get(operator, ()))

        def rank(number: int) -> tuple[bool, bool, int, int]:
            role = operator, number
            crowd = crowds.get(self._roles.executors.get(role), 0)
            return self._roles.leaves(role), number not in before, -crowd, number

        # If all are silent there is nobody to grant, and lanes wait with one until they are back.
        return tuple(sorted(sorted(candidates, key=rank)[: max(granted, 1)]))

    def _spare(
        self,
        members: Mapping[str, Sequence[int]],
        active: Mapping[str, Collection[int]],
        busy: Collection[tuple[str, int | None]],
        crowds: Mapping[str | None, int],
    ) -> list[MemberName]:
        """Those that are inactive and have finished; those on the busiest executors come last."""
        spare = [
            (name, number)
            for name, numbers in members.items()
            for number in sorted(numbers)
            if number not in active[name] and (name, number) not in busy
        ]
        return sorted(spare, key=lambda role: crowds.get(self._roles.executors.get(role), 0))


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
