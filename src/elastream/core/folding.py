"""A chain as one operator: what its operators measured, and how they behave, folded into one.

An event *is processed* by a chain when its first operator has processed it, and its execution time
is what all operators of the chain spent for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.chains import Chains
from elastream.core.service_times import Floats, ServiceTime
from elastream.core.stats import EdgeName, OperatorStats, ReplicaStats
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError


def fold_operators(
    chains: Chains, operators: Mapping[str, OperatorStats]
) -> dict[str, OperatorStats]:
    """From the statistics of declared operators to those of the effective topology."""
    return {
        name: _folded(chains, name, operators) if of.inside else operators[name]
        for name, of in chains.topology.by_name.items()
    }


def fold_edges(chains: Chains, edges: Mapping[EdgeName, float]) -> dict[EdgeName, float]:
    """Events between chains; those inside a chain are left out."""
    found: dict[EdgeName, float] = {
        (edge.origin, edge.target): 0.0 for edge in chains.topology.edges
    }
    for (origin, target), events in edges.items():
        if target not in chains.chained:
            found[chains.node(origin), target] += events
    return found


def _folded(chains: Chains, head: str, operators: Mapping[str, OperatorStats]) -> OperatorStats:
    inside = {name: operators[name] for name in chains.members(head)}
    errors: defaultdict[str, float] = defaultdict(float)
    for of in inside.values():
        for error, events in of.errors.items():
            errors[error] += events
    return replace(
        operators[head],
        emitted=sum(inside[name].emitted for name in chains.leaving(head)),
        queued=sum(of.queued for of in inside.values()),
        busy=sum(of.busy for of in inside.values()),
        dropped=sum(of.dropped for of in inside.values()),
        set_aside=sum(of.set_aside for of in inside.values()),
        errors=dict(errors),
        replicas=_replicas(inside, operators[head]),
        inside=inside,
    )


def _replicas(
    inside: Mapping[str, OperatorStats], head: OperatorStats
) -> Mapping[int, ReplicaStats]:
    busy: defaultdict[int, float] = defaultdict(float)
    for of in inside.values():
        for number, replica in of.replicas.items():
            busy[number] += replica.busy
    return {number: replace(of, busy=busy[number]) for number, of in head.replicas.items()}


@dataclass(frozen=True)
class OneAfterTheOther(ServiceTime):
    """The time of an event that passes several operators, some of them only sometimes."""

    parts: tuple[tuple[float, ServiceTime], ...]
    """For each: how many events reach it, and what one takes there."""

    @cached_property
    def mean(self) -> float:  # type: ignore[override]
        """All together."""
        return sum(events * time.mean for events, time in self.parts)

    @property
    def variation(self) -> float:
        """As if the parts were independent."""
        squares = sum((events * time.mean * time.variation) ** 2 for events, time in self.parts)
        return float(np.sqrt(squares)) / self.mean

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """All together."""
        drawn = np.zeros(count)
        for events, time in self.parts:
            drawn += events * time.draw(random, count)
        return drawn


@dataclass(frozen=True)
class FoldedBehaviour:
    """How the operators of a simulated pipeline behave, with every chain as one.

    Args:
        chains: Of the pipeline.
        declared: How its operators behave.
    """

    chains: Chains
    declared: Behaviour

    @classmethod
    def of(cls, topology: Topology, behaviour: Behaviour) -> FoldedBehaviour:
        """With the chains that the topology asks for, knowing what its operators cost."""
        costs = {name: behaviour.of(topology, name).time.mean for name in topology.by_name}
        return cls(Chains.planned(topology, costs), behaviour)

    @cached_property
    def behaviour(self) -> Behaviour:
        """That of the effective topology."""
        if not self.chains.chained:
            return self.declared
        topology = self.chains.declared
        operators = dict(self.declared.operators)
        for head, of in self.chains.topology.by_name.items():
            if of.inside:
                operators[head] = self._as_one(head)
        splits = {
            (edge.origin, edge.target): share
            for edge in topology.edges
            if edge.origin not in topology.by_name
            and (share := self.declared.splits.get((edge.origin, edge.target))) is not None
        }
        passing: defaultdict[EdgeName, float] = defaultdict(float)
        for edge in topology.edges:
            if edge.origin in topology.by_name and edge.target not in self.chains.chained:
                head = self.chains.head(edge.origin)
                own = self._reach[edge.origin] * self._selectivity(edge.origin)
                passing[head, edge.target] += own * self.declared.share(edge)
        for edge in self.chains.topology.edges:
            decided = edge.when or (edge.origin, edge.target) in self.declared.splits
            if edge.origin in topology.by_name and decided:
                whole = self._put_out(edge.origin)
                carried = passing[edge.origin, edge.target]
                splits[edge.origin, edge.target] = min(carried / whole, 1.0) if whole else 0.0
        return Behaviour(operators, splits)

    def unfolded(self, head: str, stats: OperatorStats) -> OperatorStats:
        """The statistics of a chain, with what its operators did as their behaviour says."""
        members = self.chains.members(head)
        if len(members) == 1:
            return stats
        inside = {}
        for name in members:
            reach = self._reach[name]
            mean = self.declared.of(self.chains.declared, name).time.mean
            whole = self.behaviour.of(self.chains.topology, head).time.mean
            inside[name] = OperatorStats(
                received=(stats.received if name == head else stats.processed) * reach,
                processed=stats.processed * reach,
                emitted=stats.processed * reach * self._selectivity(name),
                queued=stats.queued if name == head else 0.0,
                busy=stats.busy * reach * mean / whole,
                active=stats.active,
                dropped=stats.dropped if name == head else 0.0,
            )
        return replace(stats, inside=inside)

    def _as_one(self, head: str) -> OperatorBehaviour:
        of = self.declared.of
        topology, members = self.chains.declared, self.chains.members(head)
        speeds = {of(topology, name).speeds for name in members}
        if len(speeds) > 1:
            raise InvalidInputError(
                f"the chain {' -> '.join(members)} has one set of replicas: give all of its "
                "operators the same speeds"
            )
        parts = tuple((self._reach[name], of(topology, name).time) for name in members)
        return OperatorBehaviour(OneAfterTheOther(parts), self._put_out(head), *speeds)

    @cached_property
    def _reach(self) -> Mapping[str, float]:
        return self.chains.reach(
            lambda edge: self._selectivity(edge.origin) * self.declared.share(edge)
        )

    def _selectivity(self, name: str) -> float:
        return self.declared.of(self.chains.declared, name).selectivity

    def _put_out(self, head: str) -> float:
        """What leaves the chain per event that enters it, before edges choose."""
        leaving = self.chains.leaving(head)
        return sum(self._reach[name] * self._selectivity(name) for name in leaving)
