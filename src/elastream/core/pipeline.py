"""The way users declare a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypedDict, TypeVar, Unpack

from elastream.core.groupings import Grouping
from elastream.core.topology import Edge, Operator, Source, Topology
from elastream.errors import InvalidTopologyError

F = TypeVar("F", bound=Callable[..., Any])

Node = str | Callable[..., Any]
"""A node, by its name or by the function that it runs."""


class Settings(TypedDict, total=False):
    """The settings of an operator, as in `Operator`."""

    pool: int
    minimum: int
    grouping: Grouping[Any] | str
    key: str
    takes: tuple[str, ...]
    gives: tuple[str, ...] | None
    lanes: int | None
    timeout: float | None
    execution_time: float
    setup: Callable[[], Any] | None
    teardown: Callable[[Any], Any] | None


class Pipeline:
    """Collects sources, operators and edges; `topology()` checks them and makes them immutable.

    >>> pipeline = Pipeline("words")
    >>> lines = pipeline.source("lines")
    >>> @pipeline.operator(after=lines, pool=4)
    ... def split(batch):
    ...     return batch
    >>> @pipeline.operator(after=split, share=0.1)
    ... def store(batch):
    ...     return batch
    >>> pipeline.topology().order
    ('lines', 'split', 'store')
    """

    def __init__(self, name: str = "pipeline") -> None:
        self.name = name
        self._sources: list[Source] = []
        self._operators: list[Operator] = []
        self._edges: list[Edge] = []

    def source(self, name: str) -> str:
        """Add a source; returns its name, to write after `after=`."""
        self._sources.append(Source(name))
        return name

    def operator(
        self,
        *,
        after: Node | Iterable[Node] = (),
        when: Callable[[Any], Any] | None = None,
        share: float | None = None,
        name: str | None = None,
        **settings: Unpack[Settings],
    ) -> Callable[[F], F]:
        """`add` as a decorator: the function that it decorates stays as it is."""
        return lambda function: self.add(
            function, after=after, when=when, share=share, name=name, **settings
        )

    def add(
        self,
        function: F,
        *,
        after: Node | Iterable[Node] = (),
        when: Callable[[Any], Any] | None = None,
        share: float | None = None,
        name: str | None = None,
        **settings: Unpack[Settings],
    ) -> F:
        """Add an operator.

        Args:
            function: What it does to a batch.
            after: The nodes whose output it takes; `connect` can add more.
            when: Only events for which this holds travel the edges from `after`.
            share: Only this share of the events travels the edges from `after`.
            name: The function's own name unless given.
            settings: The other fields of `Operator`.
        """
        operator = Operator(name or str(getattr(function, "__name__", "")), function, **settings)
        self._operators.append(operator)
        for origin in (after,) if isinstance(after, str) or callable(after) else after:
            self.connect(origin, operator.name, when=when, share=share)
        return function

    def connect(
        self,
        origin: Node,
        target: Node,
        *,
        when: Callable[[Any], Any] | None = None,
        share: float | None = None,
    ) -> None:
        """Add an edge: of all events, of those for which `when` holds, or of a `share` of them."""
        self._edges.append(Edge(self._name_of(origin), self._name_of(target), when, share))

    def topology(self) -> Topology:
        """The pipeline, checked: raises `InvalidTopologyError` for one that cannot run."""
        return Topology(self.name, tuple(self._sources), tuple(self._operators), tuple(self._edges))

    def _name_of(self, node: Node) -> str:
        if isinstance(node, str):
            return node
        names = [operator.name for operator in self._operators if operator.function is node]
        if len(names) == 1:
            return names[0]
        problem = f"runs in {', '.join(names)}: say which, by name" if names else "is not in it"
        label = getattr(node, "__name__", repr(node))
        raise InvalidTopologyError(f"pipeline {self.name!r}: the function {label!r} {problem}")
