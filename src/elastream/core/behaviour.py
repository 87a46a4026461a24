"""What a simulation needs to know about a pipeline beyond its shape: how operators behave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from elastream.core.service_times import Fixed, ServiceTime
from elastream.core.stats import EdgeName, IntervalStats
from elastream.core.topology import Edge, Topology
from elastream.errors import InvalidInputError

SHORTEST_TIME = 1e-9
"""Of an operator that has processed nothing and declares nothing: it costs next to nothing."""


@dataclass(frozen=True, slots=True)
class OperatorBehaviour:
    """One operator: what an event costs, and how many events come out of it."""

    time: ServiceTime
    selectivity: float = 1.0
    """α: events emitted per event processed."""
    speeds: tuple[float, ...] = ()
    """How fast each replica of the pool is, relative to `time`; by default 1."""

    def speeds_of(self, pool: int) -> NDArray[np.float64]:
        """How fast each replica of a pool of this size is."""
        return np.array([*self.speeds, *[1.0] * pool])[:pool]

    def __post_init__(self) -> None:
        if any(not 0 < speed < float("inf") for speed in self.speeds):
            raise InvalidInputError(f"speeds={self.speeds}: each must be above 0")
        if not 0 <= self.selectivity < float("inf"):
            raise InvalidInputError(f"a selectivity of {self.selectivity}: it must be 0 or more")


@dataclass(frozen=True)
class Behaviour:
    """All operators, and how often the conditions of edges hold.

    An operator that is not listed takes its declared execution time and emits what it gets.
    """

    operators: Mapping[str, OperatorBehaviour] = field(default_factory=dict)
    splits: Mapping[EdgeName, float] = field(default_factory=dict)
    """Of the events at its origin, the share for which the `when` of an edge holds, or whose
    function names its target."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "operators", MappingProxyType(dict(self.operators)))
        object.__setattr__(self, "splits", MappingProxyType(dict(self.splits)))
        for (origin, target), share in self.splits.items():
            if not 0 <= share <= 1:
                raise InvalidInputError(f"the split {origin} -> {target} is {share}, not in [0, 1]")

    def of(self, topology: Topology, name: str) -> OperatorBehaviour:
        """The behaviour of one operator, or an error that says how to give it."""
        if name in self.operators:
            return self.operators[name]
        seconds = topology.by_name[name].execution_time
        if seconds is None:
            raise InvalidInputError(
                f"{topology}: the execution time of the operator {name!r} is unknown: "
                "declare its execution_time=... or give its behaviour"
            )
        return OperatorBehaviour(Fixed(seconds))

    def share(self, edge: Edge) -> float:
        """The share of its origin's output that takes the edge."""
        seen = self.splits.get((edge.origin, edge.target))
        if seen is not None:
            return seen
        if edge.when is None:
            return 1.0 if edge.share is None else edge.share
        raise InvalidInputError(
            f"edge {edge}: it is unknown how often its condition holds: "
            "give the share in the behaviour's splits"
        )


def measured_behaviour(topology: Topology, whole: IntervalStats) -> Behaviour:
    """How the operators behaved; as declared where they had nothing to do."""
    operators = {}
    for name, of in whole.operators.items():
        declared = topology.by_name[name].execution_time
        time = of.execution_time or declared or SHORTEST_TIME
        selectivity = 1.0 if of.selectivity is None else of.selectivity
        operators[name] = OperatorBehaviour(Fixed(time), selectivity)
    put_out = {name: of.emitted for name, of in whole.sources.items()}
    put_out |= {name: of.emitted for name, of in whole.operators.items()}
    splits = {}
    for edge in topology.edges:
        travelled, emitted = whole.edges[edge.origin, edge.target], put_out[edge.origin]
        share = min(travelled / emitted, 1.0) if emitted else 1.0
        # A plain edge carries all events, unless the function names the successors of some.
        if edge.when is not None or (edge.share is None and share < 1 - 1e-9):
            splits[edge.origin, edge.target] = share
    return Behaviour(operators, splits)
