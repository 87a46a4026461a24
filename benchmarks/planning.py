"""How long it takes to analyse and plan a DAG of 1,000 operators and 5,000 edges."""

from __future__ import annotations

import random

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report, seconds
from elastream import Pipeline
from elastream.core.decision import Plan
from elastream.core.demand import demands, output_shares, required_replicas
from elastream.core.stats import IntervalStats, OperatorStats, SourceStats
from elastream.core.topology import Topology

OPERATORS, EDGES, TARGET_MS = 1_000, 5_000, 20.0


def large_topology() -> Topology:
    """Operators in a row, each fed by earlier ones drawn at random."""
    draw = random.Random(0)
    pipeline = Pipeline("large")
    pipeline.source("in")
    names = [f"o{number}" for number in range(OPERATORS)]
    edges = {("in", "o0")}
    edges |= {(names[draw.randrange(i)], names[i]) for i in range(1, OPERATORS)}
    while len(edges) < EDGES:
        a, b = sorted(draw.sample(range(OPERATORS), 2))
        edges.add((names[a], names[b]))
    for name in names:
        pipeline.add(len, name=name, pool=64)
    for origin, target in sorted(edges):
        pipeline.connect(origin, target)
    return pipeline.topology()


def statistics_of(topology: Topology) -> IntervalStats:
    """An interval in which everything was busy and a little was queued."""
    draw = random.Random(1)
    return IntervalStats(
        interval=0,
        duration=30.0,
        sources={"in": SourceStats(60_000, 0)},
        operators={
            name: OperatorStats(1000, 950, 950, draw.randrange(100), 1.0, 4)
            for name in topology.by_name
        },
        edges={(edge.origin, edge.target): draw.uniform(1, 400) for edge in topology.edges},
    )


def main() -> bool:
    """Print the figure beside a bare walk over the same edges."""
    topology = large_topology()
    stats = statistics_of(topology)
    active = {name: of.active for name, of in stats.operators.items()}
    times = dict.fromkeys(topology.by_name, 0.001)

    def analyse_and_plan() -> object:
        shares = output_shares(topology, stats)
        expected = demands(topology, stats, 70_000.0, shares)
        plan = Plan(required_replicas(topology, expected, times, stats.duration))
        return plan.changes(active)

    def walk() -> float:
        return sum(
            stats.edges[edge.origin, edge.target]
            for name in topology.order
            for edge in topology.incoming[name]
        )

    ms, baseline = 1000 * seconds(analyse_and_plan), 1000 * seconds(walk)
    return report(
        f"Planning: {len(topology.operators):,} operators, {len(topology.edges):,} edges",
        [
            Figure("a bare walk over the edges", f"{baseline:.2f} ms", baseline=True),
            Figure("analyse and plan", f"{ms:.2f} ms", f"{TARGET_MS:.0f} ms", ms <= TARGET_MS),
        ],
    )


if __name__ == "__main__":
    by_hand(main)
