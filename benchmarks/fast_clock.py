"""What keeping a latency objective costs: a decision for 50 operators, and cycles at 0.25 s."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from benchmarks.measure import Figure, report, seconds
from elastream import Pipeline
from elastream.control import ControlLoop, Cycle, Steered
from elastream.control.history import History
from elastream.core.demand import output_shares
from elastream.core.stats import IntervalStats, OperatorStats, SourceStats
from elastream.core.topology import Topology
from elastream.engines.simulation import Arrivals, SimulationEngine, SimulationSettings
from elastream.policies.base import Context
from elastream.policies.pa_sps import PaSps, Presps
from elastream.policies.slo import Slo
from elastream.predictors.auto import Auto
from elastream.workloads.applications import twitter
from elastream.workloads.synthetic import raw

OPERATORS, DECISION_MS = 50, 20.0
CYCLES, CYCLE_MS, SHARE = 400, 12.0, 0.05


def many_operators() -> Topology:
    """Operators in a row, and as many edges again that skip some of them."""
    draw = random.Random(0)
    pipeline = Pipeline("many")
    pipeline.source("in")
    names = [f"o{number}" for number in range(OPERATORS)]
    for name in names:
        pipeline.add(len, name=name, pool=8)
    edges = {("in", names[0]), *pairwise(names)}
    while len(edges) < 2 * OPERATORS:
        a, b = sorted(draw.sample(range(OPERATORS), 2))
        edges.add((names[a], names[b]))
    for origin, target in sorted(edges):
        pipeline.connect(origin, target)
    return pipeline.topology()


def busy(topology: Topology, number: int) -> IntervalStats:
    """An interval in which everything was busy, and more waits than the objective allows."""
    draw = random.Random(number)
    return IntervalStats(
        interval=number,
        duration=0.25,
        sources={"in": SourceStats(500 + draw.randrange(50), 0)},
        operators={
            name: OperatorStats(500, 480, 480, draw.randrange(800), 0.5, 2)
            for name in topology.by_name
        },
        edges={(edge.origin, edge.target): 480.0 for edge in topology.edges},
    )


def decision_ms() -> tuple[float, float]:
    """Of `slo`, and of `presps` as a baseline, from half a minute of intervals."""
    topology = many_operators()
    past = tuple(busy(topology, number) for number in range(128))
    known = Context(
        topology=topology,
        past=past,
        execution_times=dict.fromkeys(topology.by_name, 0.001),
        shares=output_shares(topology, past[-1]),
    )
    return 1000 * seconds(lambda: Slo(0.25).decide(known)), 1000 * seconds(
        lambda: Presps().decide(known)
    )


def cycle(policy: Slo | PaSps, record: Callable[[Cycle | Steered], object]) -> tuple[float, float]:
    """The median time of a cycle in ms, and the processor time per second of the loop."""
    application = twitter()
    settings = SimulationSettings(
        step=0.05, arrivals=Arrivals.POISSON, initial=dict.fromkeys(application.topology.by_name, 8)
    )
    engine = SimulationEngine(application.topology, raw(), application.behaviour, settings)
    loop = ControlLoop(engine, policy, Auto(), td=0.25, record=record)
    taken, begun = [], time.process_time()
    for _ in range(CYCLES):
        start = time.perf_counter()
        loop.cycle()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken), (time.process_time() - begun) / (0.25 * CYCLES)


def main() -> bool:
    """Print the figures beside those of the papers' policies."""
    slo, presps = decision_ms()
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder) / "history.db")
        ours, share = cycle(Slo(0.25), history.record)
        history.close()
        history = History(Path(folder) / "published.db")
        published, _ = cycle(PaSps(), history.record)
        history.close()
    return report(
        "A latency objective: four operators, 32 replicas, a clock of 0.25 s, simulator included",
        [
            Figure(f"a decision of presps for {OPERATORS} operators", f"{presps:.2f} ms"),
            Figure(
                f"a decision of slo for {OPERATORS} operators",
                f"{slo:.2f} ms",
                f"{DECISION_MS:.0f} ms",
                slo <= DECISION_MS,
            ),
            Figure("a whole cycle of pa-sps with auto", f"{published:.2f} ms"),
            Figure(
                "a whole cycle of slo with auto",
                f"{ours:.2f} ms",
                f"{CYCLE_MS:.0f} ms",
                ours <= CYCLE_MS,
            ),
            Figure("of a core, all in all", f"{share:.1%}", f"{SHARE:.0%}", share <= SHARE),
        ],
    )


if __name__ == "__main__":
    raise SystemExit(not main())
