"""Chains: operators that share replicas, because nothing has to be redistributed between them.

A chain begins with an operator that gets events as usual, its *head*. It is followed by operators
whose only predecessor is in the chain. One replica runs them all: the output of one is passed to
the next as it is, and only what leaves the chain is sent. The chain has its head's name, pool,
lanes, grouping and key.

Policies see the *effective* topology, in which a chain is one operator; the declared one does not
change. All of this is a function of the declaration and of the measured cost of operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NoReturn

from elastream.core.topology import Chaining, Edge, Operator, Topology
from elastream.errors import InvalidTopologyError

HOP_SECONDS = 50e-6
"""What a hop is taken to cost per event; work that takes no longer is small in comparison.

It is about the processor time per event and operator in `benchmarks/spark/comparison.py`, with the
source, Java and the driver: what an operator costs besides its work. A hop alone is not measured.
"""

SCALING = ("pool", "minimum", "lanes")
"""Settings of an operator that have no effect inside a chain."""

Costs = Mapping[str, float]
"""Seconds per event, by operator, where they are known."""
NOTHING_KNOWN: Costs = MappingProxyType({})
Choose = Callable[[Edge, Operator], tuple[bool, str]]
"""Whether the target of an edge joins the chain of that head, and why."""


@dataclass(frozen=True, slots=True)
class Link:
    """The way from an operator to the next: inside a chain, or a hop; and why."""

    origin: str
    target: str
    chained: bool
    reason: str

    def __str__(self) -> str:
        how = "chained" if self.chained else "a hop"
        return f"{self.origin} -> {self.target}: {how} ({self.reason})"


@dataclass(frozen=True)
class Chains:
    """Which operators of a topology share replicas.

    >>> from elastream.core.pipeline import Pipeline
    >>> pipeline = Pipeline("orders")
    >>> _ = pipeline.add(len, name="parse", after=pipeline.source("orders"), pool=4)
    >>> _ = pipeline.add(len, name="clean", after="parse", chain=True)
    >>> _ = pipeline.add(len, name="store", after="clean")
    >>> chains = Chains.planned(pipeline.topology())
    >>> chains.members("parse"), chains.head("clean"), chains.head("store")
    (('parse', 'clean'), 'parse', 'store')
    >>> [str(edge) for edge in chains.topology.edges]
    ['orders -> parse', 'parse -> store']
    """

    declared: Topology
    links: tuple[Link, ...] = field(repr=False)
    """Between operators, in the order of the edges."""

    @classmethod
    def planned(cls, topology: Topology, costs: Costs = NOTHING_KNOWN) -> Chains:
        """The chains that a topology requests.

        Args:
            topology: As declared.
            costs: The measured cost of operators; by default, what they declare.

        Raises:
            InvalidTopologyError: An operator with `chain=True` cannot be chained.
        """
        known = {name: op.execution_time for name, op in topology.by_name.items()} | dict(costs)
        return cls._made(topology, lambda edge, head: _choice(topology, edge, head, known))

    @classmethod
    def kept(cls, topology: Topology, chained: Mapping[str, str], why: str) -> Chains:
        """Exactly these chains, whatever the topology requests.

        Args:
            topology: As declared.
            chained: By operator, the predecessor that it is chained to.
            why: The reason to give for every link.

        Raises:
            InvalidTopologyError: They do not fit what is declared now.
        """
        edges = {(edge.origin, edge.target) for edge in topology.edges}
        for target, origin in chained.items():
            if target in topology.by_name and (origin, target) not in edges:
                _refuse(topology.by_name[target], f"{why}, but it does not follow {origin!r} now")

        def choose(edge: Edge, head: Operator) -> tuple[bool, str]:
            inside = chained.get(edge.target) == edge.origin
            problem = _obstacle(topology, topology.by_name[edge.target], head)
            if inside and problem:
                _refuse(topology.by_name[edge.target], f"{why}, but {problem}")
            return inside, why

        return cls._made(topology, choose)

    @classmethod
    def _made(cls, topology: Topology, choose: Choose) -> Chains:
        heads: dict[str, Operator] = {}
        links: dict[tuple[str, str], Link] = {}
        for name in topology.order:
            operator = topology.by_name.get(name)
            if operator is None:
                continue
            heads[name] = operator
            if operator.chain and all(
                edge.origin not in topology.by_name for edge in topology.incoming[name]
            ):
                _refuse(operator, "chain=True, but no operator comes before it")
            for edge in topology.incoming[name]:
                if edge.origin in topology.by_name:
                    chained, reason = choose(edge, heads[edge.origin])
                    links[edge.origin, name] = Link(edge.origin, name, chained, reason)
                    if chained:
                        heads[name] = heads[edge.origin]
        pairs = [(edge.origin, edge.target) for edge in topology.edges]
        return cls(topology, tuple(links[pair] for pair in pairs if pair in links))

    @cached_property
    def chained(self) -> Mapping[str, str]:
        """For every operator inside a chain, the predecessor that it is chained to."""
        return {link.target: link.origin for link in self.links if link.chained}

    @cached_property
    def _heads(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name in self.declared.order:
            if name in self.declared.by_name:
                origin = self.chained.get(name)
                found[name] = name if origin is None else found[origin]
        return found

    def head(self, operator: str) -> str:
        """The first operator of the chain that an operator is in; itself if it is in none."""
        return self._heads[operator]

    def members(self, operator: str) -> tuple[str, ...]:
        """What a replica runs from this operator on: itself and what is chained to it."""
        found = {operator}
        for name in self.declared.order:
            if self.chained.get(name) in found:
                found.add(name)
        return tuple(name for name in self.declared.order if name in found)

    def node(self, name: str) -> str:
        """What a source or operator is in the effective topology."""
        return self._heads.get(name, name)

    @cached_property
    def topology(self) -> Topology:
        """The effective topology: a chain is one operator, with the name of its head."""
        if not self.chained:
            return self.declared
        operators = tuple(
            self._as_one(operator)
            for operator in self.declared.operators
            if operator.name not in self.chained
        )
        edges = tuple(self._leaving())
        return replace(self.declared, operators=operators, edges=edges, chaining=Chaining.DECLARED)

    def leaving(self, head: str) -> tuple[str, ...]:
        """The operators of a chain whose output leaves it."""
        return tuple(name for name in self.members(head) if self._leaves(name))

    def _leaves(self, name: str) -> bool:
        outgoing = self.declared.outgoing[name]
        return not outgoing or any(edge.target not in self.chained for edge in outgoing)

    def reach(self, shares: Callable[[Edge], float]) -> Mapping[str, float]:
        """Events that reach each operator per event that reaches the head of its chain.

        Args:
            shares: The share of an operator's events that takes each edge.
        """
        found: dict[str, float] = {}
        for name in self.declared.order:
            if name in self.declared.by_name:
                origin = self.chained.get(name)
                (edge, *_) = self.declared.incoming[name]
                found[name] = 1.0 if origin is None else found[origin] * shares(edge)
        return found

    def _as_one(self, head: Operator) -> Operator:
        names = self.members(head.name)
        if len(names) == 1:
            return replace(head, chain=None)
        reach = self.reach(lambda edge: 1.0 if edge.share is None else edge.share)
        times = [self.declared.by_name[name].execution_time for name in names]
        known = [
            reach[name] * time for name, time in zip(names, times, strict=True) if time is not None
        ]
        last = self.leaving(head.name)
        return replace(
            head,
            chain=None,
            inside=names,
            ends=tuple(name for name in names if not self.declared.outgoing[name]),
            gives=self.declared.by_name[last[0]].gives if len(last) == 1 else None,
            execution_time=sum(known) if len(known) == len(names) else None,
        )

    def _leaving(self) -> Iterator[Edge]:
        """Every edge between chains, once; its condition is evaluated inside the chain."""
        seen: set[tuple[str, str]] = set()
        for edge in self.declared.edges:
            origin, target = self.node(edge.origin), edge.target
            if target in self.chained or (origin, target) in seen:
                continue
            seen.add((origin, target))
            if origin not in self._heads or self.leaving(origin) == (edge.origin,):
                yield replace(edge, origin=origin)
            else:
                # Several operators emit events: this edge carries a part of all of them.
                yield Edge(origin, target, when=judged_inside)


def judged_inside(batch: Any) -> NoReturn:
    """The condition of an edge of the effective topology; the chain itself knows the real one."""
    raise NotImplementedError("a chain chooses among its events itself")


def _choice(
    topology: Topology, edge: Edge, head: Operator, known: Mapping[str, float | None]
) -> tuple[bool, str]:
    """Whether an operator shares the replicas of the chain before it, and why."""
    operator = topology.by_name[edge.target]
    if topology.chaining == Chaining.NONE:
        return False, "the pipeline has chaining='none'"
    if operator.chain is False:
        return False, "chain=False"
    problem = _obstacle(topology, operator, head)
    if operator.chain:
        if problem:
            _refuse(operator, f"chain=True, but {problem}")
        return True, _declared_reason(operator, head)
    if topology.chaining == Chaining.DECLARED:
        return False, "nothing asks for a chain"
    if problem:
        return False, problem
    if operator.pool > head.pool or operator.minimum > head.minimum:
        least = f"minimum={operator.minimum}, pool={operator.pool}"
        return False, f"it may need more replicas ({least}) than {head.name!r}"
    if operator.key:
        return True, f"both have the key {operator.key!r}"
    return _worth(edge, known)


def _worth(edge: Edge, known: Mapping[str, float | None]) -> tuple[bool, str]:
    """Whether the work on either side is small compared with a hop."""
    hop = 1e6 * HOP_SECONDS
    for name in (edge.target, edge.origin):
        seconds = known.get(name)
        if seconds is not None and seconds <= HOP_SECONDS:
            return True, f"{name!r} takes {microseconds(seconds)} µs per event, a hop {hop:.0f} µs"
    if all(known.get(name) is None for name in (edge.target, edge.origin)):
        return False, "nothing was measured or declared yet (execution_time=...)"
    return False, f"its work is not small compared with a hop, {hop:.0f} µs per event"


def microseconds(seconds: float) -> str:
    """In three digits, or as many as it takes, and never with an exponent.

    >>> microseconds(1.1e-3), microseconds(12.34e-6), microseconds(0.5765e-6)
    ('1,100', '12.3', '0.577')
    """
    told = 1e6 * seconds
    return f"{told:,.0f}" if told >= 100 else f"{told:.3g}"


def _declared_reason(operator: Operator, head: Operator) -> str:
    """Which of its own settings have no effect in a chain; defaults are nobody's choice."""
    chosen = {
        part.name: getattr(operator, part.name)
        for part in fields(Operator)
        if part.name in SCALING and getattr(operator, part.name) != part.default
    }
    unlike = [f"{name}={value}" for name, value in chosen.items() if value != getattr(head, name)]
    if not unlike:
        return "chain=True"
    verb = "has" if len(unlike) == 1 else "have"
    replicas = f"a chain has those of its first operator {head.name!r}, a pool of {head.pool}"
    return f"chain=True; {' and '.join(unlike)} {verb} no effect: {replicas}"


def _obstacle(topology: Topology, operator: Operator, head: Operator) -> str | None:
    """Why events would have to be redistributed before an operator."""
    origins = [edge.origin for edge in topology.incoming[operator.name]]
    if len(origins) > 1:
        return f"it has several predecessors: {', '.join(origins)}"
    if operator.key and (operator.key, operator.router.name) != (head.key, head.router.name):
        theirs = f"the key {head.key!r}" if head.key else "no key"
        return (
            f"its key {operator.key!r} ({operator.router.name}) needs events redistributed: "
            f"{head.name!r}, where the chain begins, has {theirs}"
        )
    return None


def _refuse(operator: Operator, problem: str) -> NoReturn:
    raise InvalidTopologyError(f"operator {operator.name!r}: {problem}")
