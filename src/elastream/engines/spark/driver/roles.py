"""Roles: which worker acts as which replica or source, and on which executor.

Where there are fewer workers than replicas, those that are inactive are given the roles that are
needed, and the bottleneck gets them first; one that is active stops being so, finishes its work,
and is given another role after that. When an executor is gone, its workers have died, and others
get their roles at once.

An executor that is to go is cleared first: others get ready in the roles that matter there, then
its replicas hand over their lanes, and what is left has nothing to do.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from elastream.core.allotment import allotted
from elastream.core.topology import Topology
from elastream.engines.spark.backends.board import Board
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.driver.worker_places import Places

log = logging.getLogger(__name__)

Numbers = Mapping[str, Sequence[int]]
"""The replicas of operators that have joined."""


class Roles:
    """Gives roles to workers; whoever uses it lets nobody else do so at the same time.

    Args:
        topology: The pipeline.
        layout: The lanes of every operator, which tell what is chained.
        board: Where workers look what they are.
    """

    def __init__(
        self, topology: Topology, layout: Mapping[str, OperatorLanes], board: Board
    ) -> None:
        self._topology = topology
        self._layout = layout
        self._board = board
        self._granted: dict[str, int] = {}
        self._lost_sources: set[MemberName] = set()
        """Those whose workers are gone: nobody is needed more."""
        self._places = Places(0, {}, frozenset())
        self._where: dict[MemberName, str] = {}
        self._acting: dict[MemberName, str] = {}
        """The processes of members, when it was last seen where they are."""
        self._leaving: frozenset[str] = frozenset()
        """Executors that are to go."""
        self._left: frozenset[str] = frozenset()
        """Those that were to go since we last looked who is there, and are not any more."""

    @property
    def executors(self) -> Mapping[MemberName, str]:
        """The executors of roles, as far as they are known."""
        return self._where

    @property
    def workers(self) -> Mapping[int, str]:
        """The executors of workers, whatever they do."""
        return self._places.executors

    def clear(self, executors: Collection[str]) -> bool:
        """Use these as little as possible from now on, and all others again; whether it is new."""
        if self._leaving == frozenset(executors):
            return False
        self._left |= self._leaving
        self._leaving = frozenset(executors)
        return True

    def leaves(self, role: MemberName) -> bool:
        """Whether it is on an executor that is to go; whoever has just come may be."""
        return bool(self._leaving) and self._where.get(role, "") in {"", *self._leaving}

    def follow(self, places: Places) -> bool:
        """Note where workers are, and take the roles from those that are gone.

        Returns:
            Whether somebody else should get ready in any role.
        """
        known = self._places.executors if self._places.generation == places.generation else {}
        # A task that has died alone comes back where it was: whoever joins then notes a death.
        gone = {worker for worker, executor in known.items() if executor not in places.alive}
        roles = self._board.roles()
        lost = [role for role, worker in roles.items() if worker in gone]
        if lost:
            self._note_loss(lost, {known[worker] for worker in gone})
            # Spark has started some elsewhere already: they keep their roles, and get ready.
            vacant = [role for role in lost if roles[role] not in places.executors]
            self._board.vacate(vacant)
            self._lost_sources |= {one for one in vacant if one[0] not in self._topology.by_name}
        self._left = frozenset()
        self._places = places
        self._acting = {name: of.process for name, of in self._board.members().items()}
        self._where = {
            role: places.executors[worker]
            for role, worker in roles.items()
            if worker is not None and worker in places.executors
        }
        return bool(lost or self._leaving)

    def _note_loss(self, lost: Collection[MemberName], executors: Collection[str]) -> None:
        expected = self._leaving | self._left >= set(executors)
        level = logging.INFO if expected else logging.WARNING
        told = ", ".join(sorted(executors))
        log.log(level, "the executor %s is gone, and with it %s", told, lost)
        # One of their events may have killed the executor.
        self._board.report_deaths(
            {name: of for name, of in self._acting.items() if self._role_of(name) in lost}
        )

    def _role_of(self, member: MemberName) -> MemberName:
        """The role of the worker that acts for a member; inside a chain, it is that of its head."""
        name, number = member
        while name in self._layout and (before := self._layout[name].chained_to):
            name = before
        return name, number

    def homeless_sources(self) -> set[MemberName]:
        """Those whose workers are gone, or on executors that are to go."""
        if self._lost_sources:
            roles = self._board.roles()
            self._lost_sources = {one for one in self._lost_sources if roles.get(one, 0) is None}
        return self._lost_sources | {
            (source.name, 0)
            for source in self._topology.sources
            if self._where.get((source.name, 0)) in self._leaving
        }

    def grant(
        self,
        wanted: Mapping[str, int],
        members: Numbers,
        joined: Collection[MemberName],
        homeless: int,
    ) -> Mapping[str, int]:
        """How many replicas each operator gets: what is wanted, if there are workers for it.

        Args:
            wanted: How many each should have.
            members: Those that stay.
            joined: All members.
            homeless: How many workers sources need first.
        """
        workers = sum(map(len, members.values())) - homeless
        if workers <= 0 or sum(wanted.values()) <= workers:
            self._granted = dict(wanted)
            return self._granted
        roles = self._board.roles()
        free = Counter(
            role[0] for role, worker in roles.items() if worker is None or self.leaves(role)
        )
        coming = self._coming(roles, joined)
        # Nobody gives up a worker for a role that somebody has, but does not act in at the moment.
        possible = {
            name: min(wanted[name], len(numbers) + coming[name] + free[name])
            for name, numbers in members.items()
        }
        minima = {name: of.minimum for name, of in self._topology.by_name.items()}
        workers += sum(coming[name] for name in members)
        self._granted = allotted(possible, minima, self._granted, workers)
        return self._granted

    def fill_vacancies(
        self,
        wanted: Mapping[str, int],
        members: Numbers,
        joined: Collection[MemberName],
        spare: list[MemberName],
        at_work: Collection[tuple[str, int | None]],
    ) -> None:
        """Give the free roles of sources and of operators that lack replicas to spare workers.

        Args:
            wanted: How many replicas each operator should have.
            members: Those that stay.
            joined: All members.
            spare: Members that have nothing to do; the last one goes first.
            at_work: Members that keep their roles, even on executors that are to go.
        """
        for source in sorted(self.homeless_sources())[: len(spare)]:
            self._move(spare.pop(), source)
        roles = self._board.roles()
        coming = self._coming(roles, joined)
        there = {name: len(numbers) + coming[name] for name, numbers in members.items()}
        for name in sorted(there, key=lambda each: there[each] / wanted[each]):
            mine = [role for role in roles if role[0] == name]
            free = [role for role in mine if roles[role] is None and role not in joined]
            # Some may be in the hands of workers that are to go, and do nothing there.
            free += [
                role
                for role in mine
                if roles[role] is not None and self.leaves(role) and role not in at_work
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
