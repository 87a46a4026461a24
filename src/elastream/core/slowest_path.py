"""The slowest path through a pipeline, given the time of every operator."""

from __future__ import annotations

from collections.abc import Mapping

from elastream.core.topology import Topology


class SlowestPaths:
    """How long the slowest path takes, through the whole pipeline and through each operator.

    >>> from elastream import Pipeline
    >>> pipeline = Pipeline()
    >>> lines = pipeline.source("lines")
    >>> for name, after in (("a", lines), ("b", "a"), ("c", "a"), ("d", "b")):
    ...     _ = pipeline.add(len, name=name, after=after)
    >>> paths = SlowestPaths(pipeline.topology(), {"a": 1.0, "b": 2.0, "c": 5.0, "d": 1.0})
    >>> paths.longest, paths.slowest(), paths.through("b")
    (6.0, ['a', 'c'], 4.0)
    """

    def __init__(self, topology: Topology, times: Mapping[str, float]) -> None:
        self._topology = topology
        self._times = dict(times)
        self._after: dict[str, float] = {}
        """From each node on; computed on first use."""
        self._find()

    @property
    def longest(self) -> float:
        """How long the slowest path takes."""
        return max(self._until.values())

    def change(self, times: Mapping[str, float]) -> None:
        """Let some operators take another time."""
        self._times |= times
        self._find()

    def slowest(self) -> list[str]:
        """The operators of the slowest path, from the first to the last."""
        node: str | None = max(self._until, key=lambda name: self._until[name])
        path = []
        while node is not None:
            if node in self._topology.by_name:
                path.append(node)
            node = self._came_from[node]
        return path[::-1]

    def through(self, operator: str) -> float:
        """How long the slowest path through an operator takes."""
        if not self._after:
            for name in reversed(self._topology.order):
                ahead = [self._after[edge.target] for edge in self._topology.outgoing[name]]
                self._after[name] = self._times.get(name, 0.0) + max(ahead, default=0.0)
        return self._until[operator] + self._after[operator] - self._times.get(operator, 0.0)

    def _find(self) -> None:
        self._until: dict[str, float] = {}
        self._came_from: dict[str, str | None] = {}
        self._after.clear()
        for name in self._topology.order:
            origins = [edge.origin for edge in self._topology.incoming[name]]
            slowest = max(origins, key=lambda origin: self._until[origin], default=None)
            before = 0.0 if slowest is None else self._until[slowest]
            self._until[name] = before + self._times.get(name, 0.0)
            self._came_from[name] = slowest
