"""What a pipeline is: sources, operators and the edges between them, checked and immutable.

Users declare one with `elastream.Pipeline`; every engine runs one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from elastream.core.groupings import GROUPINGS, Grouping
from elastream.errors import InvalidInputError, InvalidTopologyError, UnknownNameError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_SHARE_TOLERANCE = 1e-9
MOST_LANES = 4096


@dataclass(frozen=True, slots=True)
class Source:
    """Where events enter the pipeline."""

    name: str

    def __post_init__(self) -> None:
        _check_name("source", self.name)


@dataclass(frozen=True, slots=True)
class Operator:
    """A stateless function on batches of events, and the pool of replicas that run it."""

    name: str
    function: Callable[..., Any]
    """`function(batch)`, or `function(batch, resource)` when there is a `setup`."""
    pool: int = 8
    """How many replicas are deployed: the most that can be active at once."""
    minimum: int = 1
    """How many replicas are always active."""
    grouping: Grouping[Any] | str = "next-free"
    """How events are distributed among the active replicas."""
    key: str | None = None
    """The column that `grouping` uses, if it uses one."""
    takes: tuple[str, ...] = ()
    """The columns that its events must have; others are allowed."""
    gives: tuple[str, ...] | None = None
    """The columns of its output, if known before it runs."""
    lanes: int | None = None
    """How many lanes its events wait in; by default four for each replica of the pool."""
    timeout: float | None = None
    """How long the function may run, in seconds; when it takes longer, its process is replaced."""
    concurrency: int = 16
    """How many calls of an `async` function that takes rows run at once in a replica."""
    execution_time: float | None = None
    """et_i before anything was measured, in seconds per event."""
    setup: Callable[[], Any] | None = None
    """Runs once in every replica: opens a connection, loads a model. Returns the `resource`."""
    teardown: Callable[[Any], Any] | None = None
    """Runs once in every replica when it ends, with the `resource`."""
    chain: bool | None = None
    """Whether it shares the replicas of its predecessor; by default the pipeline decides."""
    inside: tuple[str, ...] = ()
    """If it stands for a chain: the chain's operators, including the first. See `core.chains`."""
    ends: tuple[str, ...] = ()
    """Those of them whose output leaves the pipeline."""

    def __post_init__(self) -> None:
        _check_name("operator", self.name)
        if isinstance(self.grouping, str):
            object.__setattr__(self, "grouping", GROUPINGS[self.grouping]())
        problem = self._fractional_count() or self._no_seconds() or self._problem()
        if problem:
            raise InvalidTopologyError(f"operator {self.name!r}: {problem}")

    @property
    def router(self) -> Grouping[Any]:
        """The grouping, after a name has been looked up."""
        assert isinstance(self.grouping, Grouping)
        return self.grouping

    @property
    def needs(self) -> tuple[str, ...]:
        """All columns that its events must have."""
        return tuple(dict.fromkeys((*self.takes, *((self.key,) if self.key else ()))))

    def check_columns(self, columns: Iterable[str], origin: str) -> None:
        """Raise an error if the operator cannot take events with these columns."""
        there = list(columns)
        missing = ", ".join(repr(name) for name in self.needs if name not in there)
        if missing:
            raise InvalidTopologyError(
                f"operator {self.name!r} needs {missing}, but events from {origin!r} have only "
                f"the columns: {', '.join(there) or 'none'}"
            )

    def _fractional_count(self) -> str | None:
        for name in ("pool", "minimum", "concurrency", "lanes"):
            value = getattr(self, name)
            if not isinstance(value, int) and (name, value) != ("lanes", None):
                return f"{name}={value!r} must be a whole number"
        return None

    def _no_seconds(self) -> str | None:
        for name, per in (("execution_time", " per event"), ("timeout", "")):
            value = getattr(self, name)
            if value is not None and not _is_positive(value):
                return f"{name}={value!r} must be a positive number of seconds{per}"
        return None

    def _problem(self) -> str | None:
        if not callable(self.function):
            return f"its function must be callable, not {self.function!r}"
        if min(self.minimum, self.concurrency) < 1:
            given = f"minimum={self.minimum}, concurrency={self.concurrency}"
            return f"{given}: at least one replica must stay active, with at least one call"
        if self.pool < self.minimum:
            return f"pool={self.pool} is below minimum={self.minimum}"
        if self.router.needs_key and not self.key:
            return f"the grouping {self.router.name!r} needs a column: name it with key=..."
        if self.key and not self.router.needs_key:
            return f"key={self.key!r} has no effect with the grouping {self.router.name!r}"
        if self.lanes is not None and not self.pool <= self.lanes <= MOST_LANES:
            return f"lanes={self.lanes} must be from the pool's {self.pool} to {MOST_LANES}"
        if self.teardown and not self.setup:
            return "a teardown needs a setup"
        return None


@dataclass(frozen=True, slots=True)
class Edge:
    """The way from one node to the next for all events, for those that match, or for a share.

    Edges with a share split the events of their origin: no event takes two of them, and if the
    shares add up to less than 1, the remaining events take none.
    """

    origin: str
    target: str
    when: Callable[[Any], Any] | None = None
    """Takes a batch, returns a boolean for every event."""
    share: float | None = None

    def __post_init__(self) -> None:
        if self.when and self.share is not None:
            raise InvalidTopologyError(f"edge {self}: give either when=... or share=..., not both")
        if self.when is not None and not callable(self.when):
            raise InvalidTopologyError(
                f"edge {self}: when={self.when!r} must be a function of a batch"
            )
        if self.share is not None and not (_is_positive(self.share) and self.share <= 1):
            raise InvalidTopologyError(f"edge {self}: share={self.share!r} is not in (0, 1]")

    def __str__(self) -> str:
        return f"{self.origin} -> {self.target}"


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0


class Chaining(StrEnum):
    """Which operators share the replicas of their predecessor."""

    DECLARED = "declared"
    """Those that say `chain=True`."""
    AUTO = "auto"
    """Also those whose work is small compared with a hop, or that share their predecessor's key."""
    NONE = "none"
    """None, whatever they say."""


@dataclass(frozen=True)
class Topology:
    """A pipeline that can run: a DAG in which every operator can be reached from a source.

    Examples:
        >>> sources, operators = (Source("orders"),), (Operator("price", len),)
        >>> Topology("shop", sources, operators, (Edge("orders", "price"),)).order
        ('orders', 'price')
    """

    name: str
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]
    chaining: Chaining | str = Chaining.DECLARED

    def __post_init__(self) -> None:
        _check_name("pipeline", self.name)
        if self.chaining not in list(Chaining):
            raise UnknownNameError("chaining", self.chaining, list(Chaining))
        self._check_nodes()
        self._check_edges()
        self._check_reach(self.order)
        self._check_columns()

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Every node, sources included, each after all of its predecessors."""
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for name in self._names():
            sorter.add(name)
        for edge in self.edges:
            sorter.add(edge.target, edge.origin)
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            cycle = " -> ".join(reversed(error.args[1]))
            raise InvalidTopologyError(f"{self} has a cycle: {cycle}") from None

    @cached_property
    def by_name(self) -> Mapping[str, Operator]:
        """The operators, in the order of their declaration."""
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def incoming(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges that end at each node."""
        return self._edges_by(lambda edge: edge.target)

    @cached_property
    def outgoing(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges that start at each node."""
        return self._edges_by(lambda edge: edge.origin)

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        """The operators whose output leaves the pipeline."""
        return tuple(op.name for op in self.operators if not self.outgoing[op.name])

    def check_replicas(self, replicas: Mapping[str, int]) -> None:
        """Raise what keeps operators from having this many replicas: one that is not there, too."""
        for name, count in replicas.items():
            if name not in self.by_name:
                known = ", ".join(self.by_name)
                raise InvalidInputError(f"{self} has no operator {name!r} to scale; it has {known}")
            pool = self.by_name[name].pool
            if not 1 <= count <= pool:
                raise InvalidInputError(
                    f"{count} replicas of {name!r}: its pool allows 1 to {pool}"
                )

    def __str__(self) -> str:
        return f"pipeline {self.name!r}"

    def _names(self) -> list[str]:
        return [*(node.name for node in self.sources), *(node.name for node in self.operators)]

    def _edges_by(self, end: Callable[[Edge], str]) -> Mapping[str, tuple[Edge, ...]]:
        lists: dict[str, list[Edge]] = {name: [] for name in self._names()}
        for edge in self.edges:
            lists[end(edge)].append(edge)
        return {name: tuple(edges) for name, edges in lists.items()}

    def _check_nodes(self) -> None:
        if not self.sources:
            raise InvalidTopologyError(f"{self} has no source: add one with pipeline.source(...)")
        if not self.operators:
            raise InvalidTopologyError(f"{self} has no operator")
        names = Counter(self._names())
        twice = _listed(name for name, count in names.items() if count > 1)
        if twice:
            raise InvalidTopologyError(f"{self} declares more than once: {twice}")

    def _check_edges(self) -> None:
        sources = {source.name for source in self.sources}
        nodes = sources | self.by_name.keys()
        for edge in self.edges:
            for end in (edge.origin, edge.target):
                if end not in nodes:
                    known = ", ".join(sorted(nodes))
                    raise InvalidTopologyError(f"edge {edge}: unknown name {end!r}, not in {known}")
            if edge.target in sources:
                raise InvalidTopologyError(f"edge {edge}: a source takes no input")
        pairs = Counter((edge.origin, edge.target) for edge in self.edges)
        twice = _listed(f"{a} -> {b}" for (a, b), count in pairs.items() if count > 1)
        if twice:
            raise InvalidTopologyError(f"{self} declares an edge more than once: {twice}")
        for origin, edges in self.outgoing.items():
            total = sum(edge.share or 0.0 for edge in edges)
            if total > 1 + _SHARE_TOLERANCE:
                raise InvalidTopologyError(
                    f"the shares of the edges from {origin!r} add up to {total:g}, above 1"
                )

    def _check_reach(self, order: Iterable[str]) -> None:
        reached = {source.name for source in self.sources}
        for name in order:
            if any(edge.origin in reached for edge in self.incoming[name]):
                reached.add(name)
        unreachable = _listed(op.name for op in self.operators if op.name not in reached)
        if unreachable:
            raise InvalidTopologyError(
                f"{self}: no source leads to {unreachable}: say after=... or pipeline.connect(...)"
            )
        idle = _listed(source.name for source in self.sources if not self.outgoing[source.name])
        if idle:
            raise InvalidTopologyError(f"{self}: nothing reads from {idle}")

    def _check_columns(self) -> None:
        for edge in self.edges:
            origin = self.by_name.get(edge.origin)
            if origin and origin.gives is not None:
                self.by_name[edge.target].check_columns(origin.gives, edge.origin)


def _check_name(kind: str, name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidTopologyError(
            f"{kind} name {name!r}: start with a letter, then use letters, digits, '.', '_', '-'"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
