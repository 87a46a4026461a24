"""The way users declare a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypedDict, TypeVar, Unpack, overload

from elastream.core.chains import Chains
from elastream.core.groupings import Grouping
from elastream.core.topology import Chaining, Edge, Operator, Source, Topology
from elastream.errors import InvalidTopologyError, UnknownNameError

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
    concurrency: int
    execution_time: float
    setup: Callable[[], Any] | None
    teardown: Callable[[Any], Any] | None
    chain: bool | None


ARGUMENTS = ("after", "when", "share", "name", *Settings.__annotations__)


class Pipeline:
    """Collects sources, operators and edges; `topology()` checks them and makes them immutable.

    Args:
        name: The name of the pipeline.
        chaining: Which operators share the replicas of their predecessor: `"declared"`, those with
            `chain=True`; `"auto"`, also those whose work is small compared with a hop, or that have
            the key of their predecessor; `"none"`, none. `elastream explain` shows which.

    Examples:
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

    def __init__(
        self, name: str = "pipeline", chaining: Chaining | str = Chaining.DECLARED
    ) -> None:
        self.name = name
        self.chaining = chaining
        self._sources: list[Source] = []
        self._operators: list[Operator] = []
        self._edges: list[Edge] = []

    def source(self, name: str) -> str:
        """Add a source, and return its name, for `after=`."""
        self._sources.append(Source(name))
        return name

    @overload
    def operator(self, function: F, /) -> F: ...

    @overload
    def operator(
        self,
        *,
        after: Node | Iterable[Node] = ...,
        when: Callable[[Any], Any] | None = ...,
        share: float | None = ...,
        name: str | None = ...,
        **settings: Unpack[Settings],
    ) -> Callable[[F], F]: ...

    def operator(  # type: ignore[misc] # mypy does not see through Unpack here
        self,
        function: F | None = None,
        /,
        *,
        after: Node | Iterable[Node] = (),
        when: Callable[[Any], Any] | None = None,
        share: float | None = None,
        name: str | None = None,
        **settings: Unpack[Settings],
    ) -> F | Callable[[F], F]:
        """Add an operator, as a decorator. Your function itself does not change.

        The annotation of its first parameter says how the function gets events: as a
        `pyarrow.Table`, a `pandas.DataFrame`, a `list` of rows, or one row (`dict`) at a time. It
        returns any of these, or None for no events; it may also yield them. `return "alert", rows`
        sends rows to the successor `alert` only. An `async def` that takes rows is called for many
        rows at once. A parameter `context: elastream.Context` tells the function which unit it is
        working on. A class with `__call__` is instantiated once in every replica; its `setup` is
        called then, and its `close` when the replica ends.

        Args:
            function: What you decorate, when you write the decorator without parentheses.
            after: The source or operators whose output it takes; `connect` can add more.
            when: A condition on the edges from `after`: a function that gets a batch and returns a
                boolean for every event.
            share: The share of the events that takes the edges from `after`.
            name: By default, the name of the function.
            settings: Any of the following.

        Keyword Args:
            pool: How many replicas are deployed: the most that can ever be active. Default: 8.
            minimum: How many replicas are always active. Default: 1.
            grouping: How events are distributed among the active replicas: `"next-free"`,
                `"shuffle"`, `"key"`, `"load-aware"`, `"osg"` or `"pull"`. Default: `"next-free"`.
            key: The column that the grouping uses, if it needs one.
            takes: The columns that its events must have.
            gives: The columns of its output, if you know them before it runs.
            lanes: How many queues its events wait in. Default: four for each replica of the pool.
            timeout: How long the function may run, in seconds, before its process is replaced.
            concurrency: How many calls of an `async` function run at once in a replica. Default:
                16.
            execution_time: Seconds per event, until it has been measured; simulations need it.
            setup: Runs once in every replica, to open a connection or load a model. It returns the
                *resource*, which the function then gets as its second argument, as in
                `def classify(batch, model)`.
            teardown: Runs once in every replica when it ends, with the resource.
            chain: With True, it shares the replicas of its only predecessor, and gets its events in
                the same process. Its own pool, lanes and grouping have no effect then; those of the
                first operator of the chain apply. With False, it never does, not even with
                `chaining="auto"`.

        Examples:
            >>> pipeline = Pipeline("words")
            >>> lines = pipeline.source("lines")
            >>> @pipeline.operator(after=lines, pool=4, setup=lambda: {"a", "the"})
            ... def split(rows: list, stop_words):
            ...     words = (word for row in rows for word in row["line"].split())
            ...     return [{"word": word} for word in words if word not in stop_words]
        """

        def add(decorated: F) -> F:
            return self.add(decorated, after=after, when=when, share=share, name=name, **settings)

        return add if function is None else add(function)

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
        """Add an operator; all arguments are those of `operator`.

        Args:
            function: What it does to events; a class is instantiated once in every replica.
            after: The source or operators whose output it takes; `connect` can add more.
            when: A condition on the edges from `after`.
            share: The share of the events that takes the edges from `after`.
            name: By default, the name of the function.
            settings: As for `operator`.
        """
        for argument in settings.keys() - Settings.__annotations__.keys():
            raise UnknownNameError("argument of an operator", argument, ARGUMENTS)
        given = name or getattr(function, "__name__", type(function).__name__)
        operator = Operator(str(given), function, **settings)
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
        """Add an edge for all events, for those that match `when`, or for a `share` of them."""
        self._edges.append(Edge(self._name_of(origin), self._name_of(target), when, share))

    def topology(self) -> Topology:
        """Check the pipeline; raises `InvalidTopologyError` if it cannot run."""
        parts = tuple(self._sources), tuple(self._operators), tuple(self._edges)
        topology = Topology(self.name, *parts, self.chaining)
        Chains.planned(topology)  # Refuses an operator with chain=True that cannot be chained.
        return topology

    def _name_of(self, node: Node) -> str:
        if isinstance(node, str):
            return node
        names = [operator.name for operator in self._operators if operator.function is node]
        if len(names) == 1:
            return names[0]
        problem = f"runs in {', '.join(names)}: say which, by name" if names else "is not in it"
        label = getattr(node, "__name__", repr(node))
        raise InvalidTopologyError(f"pipeline {self.name!r}: the function {label!r} {problem}")
