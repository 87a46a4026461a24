"""Placement: which replicas are active, and which lanes they own.

Any replicas that have joined can be active, not only the first ones of a pool. A plan is published
only when it changes something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from elastream.core.lanes import Owners, assign, lane_weights
from elastream.core.topology import Topology
from elastream.engines.spark.backends.base import (
    Attendance,
    Board,
    LanePlan,
    MemberName,
    OperatorLanes,
    Totals,
)

NOBODY = -1
KEPT = 0.9
"""How much of what a lane weighed is kept at every review."""


def nobody(members: Mapping[MemberName, Attendance]) -> frozenset[MemberName]:
    """No member is silent."""
    return frozenset()


class Placement:
    """Keeps the plan that workers follow.

    Args:
        topology: The pipeline.
        layout: The lanes of every operator.
        board: Where plans are published; nobody else uses this connection at the same time.
        totals: Looks up what has been counted, on the same connection.
        silent: Of some members, those that have not been heard of for too long.
    """

    def __init__(
        self,
        topology: Topology,
        layout: Mapping[str, OperatorLanes],
        board: Board,
        totals: Callable[[], Totals],
        silent: Callable[[Mapping[MemberName, Attendance]], frozenset[MemberName]] = nobody,
    ) -> None:
        self._topology = topology
        self._layout = layout
        self._board = board
        self._totals = totals
        self._silent = silent
        self._lock = Lock()
        self._wanted = {name: of.minimum for name, of in topology.by_name.items()}
        self._plan = self._published = LanePlan()
        self._before: Totals | None = None
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
            self._publish_changes(self._totals())

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
            totals = self._totals()
            self._learn(totals)
            if self._plan.active:
                self._publish_changes(totals)

    def _learn(self, totals: Totals) -> None:
        for operator, states in totals.lanes.items():
            earlier = self._before.lanes.get(operator, {}) if self._before else {}
            smoothed = self._arriving.setdefault(operator, {})
            for lane, state in states.items():
                arrived = state.arrived - (earlier[lane].arrived if lane in earlier else 0)
                smoothed[lane] = KEPT * smoothed.get(lane, 0.0) + (1 - KEPT) * arrived
        self._before = totals

    def _publish_changes(self, totals: Totals) -> None:
        joined = self._board.members()
        members: dict[str, list[int]] = {name: [] for name in self._topology.by_name}
        for name, number in joined.keys() - self._silent(joined):
            if name in members:
                members[name].append(number)
        self._fill_vacancies(members)
        active = {name: self._chosen(name, numbers) for name, numbers in members.items()}
        owners = {
            name: self._owners(name, replicas, totals)
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

    def _chosen(self, operator: str, joined: Sequence[int]) -> tuple[int, ...]:
        """As many as are wanted: first those that are active, then the others in their order.

        Before anybody has joined, they are chosen among all.
        """
        candidates = joined or range(self._topology.by_name[operator].pool)
        before = frozenset(self._plan.active.get(operator, ()))
        ranked = sorted(candidates, key=lambda number: (number not in before, number))
        return tuple(sorted(ranked[: self._wanted[operator]]))

    def _owners(self, operator: str, active: tuple[int, ...], totals: Totals) -> Owners:
        lanes, keyed = self._layout[operator].lanes, self._layout[operator].key is not None
        before = self._plan.owners.get(operator) or (NOBODY,) * lanes
        if not keyed and set(before) == set(active):
            # Producers distribute events evenly; only a key makes a lane heavy for good.
            return before
        states = totals.lanes.get(operator, {})
        queued = {lane: float(state.waiting) for lane, state in states.items()}
        arriving = self._arriving.get(operator, {})
        return assign(before, active, lane_weights(queued, arriving, lanes, keyed))

    def _fill_vacancies(self, joined: Mapping[str, Sequence[int]]) -> None:
        """Where an operator lacks replicas, give its free roles to workers that are inactive."""
        spare = [
            (name, number)
            for name, numbers in joined.items()
            for number in sorted(numbers)[max(self._wanted[name], 1) :]
            if number not in self._plan.active.get(name, ())
        ]
        for name, numbers in joined.items():
            missing = self._wanted[name] - len(numbers)
            if missing <= 0:
                continue
            pool = self._topology.by_name[name].pool
            vacant = [number for number in range(pool) if number not in numbers]
            for number in vacant[:missing]:
                if any(self._board.reassign(role, (name, number)) for role in spare[-1:]):
                    spare.pop()
