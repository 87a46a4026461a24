"""From what was measured to what a simulation needs to know."""

from __future__ import annotations

from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.service_times import Fixed
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology

SHORTEST_TIME = 1e-9
"""For an operator that has processed nothing and declares nothing: it costs next to nothing."""


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
        if edge.when is not None:
            travelled, emitted = whole.edges[edge.origin, edge.target], put_out[edge.origin]
            splits[edge.origin, edge.target] = min(travelled / emitted, 1.0) if emitted else 1.0
    return Behaviour(operators, splits)
