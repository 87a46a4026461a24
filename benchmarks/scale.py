"""What a large cluster would ask of the driver: 100 operators, 1,000 executors, 4,000 replicas.

No cluster of this size is needed: what the driver computes is run at that size, and its board and
ledger hold as many members and lanes. `docs/scale.md` says what follows for 10 million events/s.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report, seconds
from elastream import Pipeline
from elastream.core.chains import Chains
from elastream.core.demand import output_shares
from elastream.core.latency import LatencyHistogram
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.engines.spark.backends.base import Connection
from elastream.engines.spark.backends.encoding import counts_to_json, plan_from_json, plan_to_json
from elastream.engines.spark.backends.kafka.commands import apply
from elastream.engines.spark.backends.kafka.state import State
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.driver.condition import Condition
from elastream.engines.spark.driver.placement import Placement
from elastream.engines.spark.driver.statistics import interval_stats
from elastream.policies.base import Context
from elastream.policies.slo import Slo

LINES, DEEP, POOL, EXECUTORS = 10, 10, 40, 1_000
UNIT = 18
"""Events that one commit stands for: the default unit of work."""
COMMITS = 20_000


def topology() -> Topology:
    """Ten lines of ten operators, whose costs differ; each line has a tenth of the events."""
    draw, pipeline = random.Random(0), Pipeline("large")
    for line in range(LINES):
        before = pipeline.source(f"in{line}")
        for place in range(DEEP):
            name = f"o{line}-{place}"
            time_per_event = draw.choice([0.25, 0.5, 0.75, 1.0]) * 1e-4
            pipeline.add(len, name=name, after=before, pool=POOL, execution_time=time_per_event)
            before = name
    return pipeline.topology()


@contextmanager
def populated(large: Topology, lanes: dict[str, OperatorLanes]) -> Iterator[Connection]:
    """A real state in which every replica has joined and has counted something."""
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        backend = SqliteBackend(Path(folder) / "state")
        backend.prepare("large", lanes)
        with backend.connect() as connection:
            roles = [(name, number) for name in large.by_name for number in range(POOL)]
            generation = connection.board.new_generation(roles)
            connection.board.start(generation)
            for name, number in roles:
                connection.lanes.join((name, number), generation)
                connection.lanes.commit([], [], counts(large, name, draw))
            yield connection
        backend.sweep()


def counts(large: Topology, name: str, draw: random.Random) -> Counts:
    """What a replica may have counted."""
    events = draw.randrange(10_000, 20_000)
    following = {edge.target: events for edge in large.outgoing[name]}
    bins = {draw.randrange(400, 600): float(draw.randrange(1, 500)) for _ in range(40)}
    latency = None if following else LatencyHistogram(bins)
    return Counts(events, events, 0, 0.8, 0.3, sent=following, latency=latency)


def commits_per_second() -> float:
    """How quickly one reader of Kafka's journal gets through commits."""
    state = State()
    apply(state, {"do": "join", "name": ["a", 0], "process": "p", "generation": 1, "sequence": 0})
    told = counts_to_json(Counts(UNIT, UNIT, 0, 0.02, 0.01, sent={"b": UNIT}))
    records = [
        json.dumps(
            {
                "do": "commit",
                "name": ["a", 0],
                "process": "p",
                "sequence": number,
                "places": [],
                "results": [
                    ["b", ["large-b", number % 160, number], [[number % 160, UNIT]], False]
                ],
                "dead": [],
                "counts": told,
            }
        ).encode()
        for number in range(1, COMMITS + 1)
    ]
    began = time.perf_counter()
    for record in records:
        apply(state, json.loads(record))
    return COMMITS / (time.perf_counter() - began)


def main() -> bool:
    """Print the figures; targets are what a clock of 0.25 s and windows of 1 s leave room for."""
    large = topology()
    lanes = {name: OperatorLanes(4 * POOL) for name in large.by_name}
    chains = Chains.planned(large)
    with populated(large, lanes) as connection:
        members = connection.board.members()
        totals_ms = 1000 * seconds(connection.ledger.totals, 5)
        totals = connection.ledger.totals()
        placement = Placement(large, lanes, connection.board, lambda: totals)
        draw = random.Random(2)

        def change() -> None:
            placement.want({name: draw.randint(POOL // 2, POOL) for name in large.by_name})

        placement_ms = 1000 * seconds(change, 5)
        plan = placement.plan

        def statistics() -> IntervalStats:
            condition = Condition(plan, placement.wanted, members, frozenset())
            return interval_stats(chains, 0, 1.0, totals, totals, condition, {})

        stats_ms = 1000 * seconds(statistics, 5)
        stats = statistics()
    text = plan_to_json(plan)
    known = Context(
        topology=large,
        past=(stats,) * 128,
        execution_times={name: of.execution_time or 1e-4 for name, of in large.by_name.items()},
        shares=output_shares(large, stats),
    )
    decision_ms = 1000 * seconds(lambda: Slo(0.25).decide(known), 5)
    readers = len(members)
    commits = commits_per_second()
    return report(
        f"Scale: {len(large.operators)} operators, {EXECUTORS:,} executors, {readers:,} replicas, "
        f"{4 * readers:,} lanes",
        [
            Figure("a plan as text", f"{len(text) / 1024:.0f} KiB"),
            Figure("to all replicas, for each change", f"{len(text) * readers / 2**20:.0f} MiB"),
            Figure(
                "a replica reads it", f"{1000 * seconds(lambda: plan_from_json(text, 1)):.1f} ms"
            ),
            Figure(
                "ledger: all counts, from SQLite", f"{totals_ms:.0f} ms", "250 ms", totals_ms <= 250
            ),
            Figure("statistics of an interval", f"{stats_ms:.0f} ms", "250 ms", stats_ms <= 250),
            Figure("a decision of slo", f"{decision_ms:.0f} ms", "125 ms", decision_ms <= 125),
            Figure(
                "placement, when every operator changes",
                f"{placement_ms:.0f} ms",
                "1,000 ms",
                placement_ms <= 1000,
            ),
            Figure("Kafka's journal: commits that one reader follows", f"{commits:,.0f}/s"),
            Figure(
                f"of {UNIT} events each, through all operators", f"{commits * UNIT:,.0f} events/s"
            ),
        ],
    )


if __name__ == "__main__":
    by_hand(main)
