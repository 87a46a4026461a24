"""What keeping a latency objective costs: a decision for 50 operators, and cycles at 0.25 s.

A cycle observes, decides, publishes and records, on Spark with the state in SQLite: four operators
with pools of 8, all 32 replicas deployed, and an input that goes up and down, so that there is
something to publish. The loop is as `elastream.run` makes it: forecasts are made on another thread,
and given up after half an interval.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

import elastream
from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import SERVICE_SECONDS, line, running, wait
from elastream import Pipeline
from elastream.control import ControlLoop
from elastream.control.history import History
from elastream.core.demand import output_shares
from elastream.core.stats import IntervalStats, OperatorStats, SourceStats
from elastream.core.topology import Topology
from elastream.engines.base import Clock
from elastream.policies.base import REMEMBERED_INTERVALS, Context, Policy
from elastream.policies.pa_sps import PaSps, Presps
from elastream.policies.slo import Slo
from elastream.predictors.auto import Auto
from elastream.predictors.base import Predictor
from elastream.running.choices import in_time

OPERATORS, DECISIONS, DECISION_MS = 50, 200, 20.0
SAMPLER = "sampler"
"""The name of the threads that close sampling windows."""
CLOCK, WARM_UP, CYCLES, CYCLE_MS, SHARE = 0.25, 40, 200, 12.0, 0.05
MEAN_RATE = 2_000.0


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


def decision_ms(policy: Policy) -> float:
    """Its longest decision, each with as many intervals as policies remember.

    In processor time: it only computes, and what else the machine does is not its own.
    """
    topology = many_operators()
    intervals = [busy(topology, number) for number in range(REMEMBERED_INTERVALS + DECISIONS)]
    taken = []
    for number in range(DECISIONS):
        past = tuple(intervals[number : number + REMEMBERED_INTERVALS])
        known = Context(
            topology=topology,
            past=past,
            execution_times=dict.fromkeys(topology.by_name, 0.001),
            shares=output_shares(topology, past[-1]),
        )
        start = time.thread_time()
        policy.decide(known)
        taken.append(1000 * (time.thread_time() - start))
    return max(taken)


def worked(model: Predictor) -> float:
    """The processor time of the loop, of its forecasts and of its samples so far, in seconds."""
    beside = [
        thread.ident
        for thread in threading.enumerate()
        if thread.ident and (thread.name == SAMPLER or thread.name.startswith(f"{model.name}_"))
    ]
    clocks = [time.pthread_getcpuclockid(ident) for ident in beside]
    return time.thread_time() + sum(map(time.clock_gettime, clocks))


class Noting:
    """The engine's clock, which also notes for how long it has let the loop sleep."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.slept = 0.0

    def now(self) -> float:
        """Of the engine."""
        return self._clock.now()

    def sleep_until(self, moment: float) -> None:
        """As the engine does."""
        began = time.perf_counter()
        self._clock.sleep_until(moment)
        self.slept += time.perf_counter() - began

    def wake(self) -> None:
        """End the sleep."""
        self._clock.wake()


@dataclass(frozen=True)
class Cycles:
    """What cycles at a clock of 0.25 s cost on Spark."""

    taken: list[float]
    """From the end of the wait until all is recorded, in milliseconds."""
    share: float
    """The processor time of the loop's threads per second, in cores."""
    changes: int

    def quantile(self, share: float) -> float:
        """The time that this share of cycles does not exceed, in milliseconds."""
        return float(np.quantile(self.taken, share))


def cycles(policy: Policy, session: SparkSession, topology: Topology) -> Cycles:
    """Observe, decide, publish and record on the real engine, while replicas work beside."""
    waves = MEAN_RATE * (1 + 0.8 * np.sin(np.arange(60) * 2 * np.pi / 20))
    with tempfile.TemporaryDirectory() as folder, running(topology, waves, session) as run:
        history = History(Path(folder) / "history.db")
        clock = Noting(run.engine.clock)
        run.engine.clock = clock  # type: ignore[assignment] # it notes, and does the same
        model = in_time(Auto(), CLOCK)
        loop = ControlLoop(run.engine, policy, model, td=CLOCK, record=history.record)
        for _ in range(WARM_UP):
            loop.cycle()
        taken, changes = [], 0
        began, before = time.perf_counter(), worked(model)
        for _ in range(CYCLES):
            start, slept = time.perf_counter(), clock.slept
            changes += len(loop.cycle().changes)
            taken.append(1000 * (time.perf_counter() - start - (clock.slept - slept)))
        share = (worked(model) - before) / (time.perf_counter() - began)
        history.close()
    return Cycles(taken, share, changes)


def main() -> bool:
    """Print the figures beside those of the papers' policies."""
    slo, presps = decision_ms(Slo(0.25)), decision_ms(Presps())
    topology = line(4, 8, wait, execution_time=SERVICE_SECONDS)
    session = elastream.session(topology)
    published = cycles(PaSps(), session, topology)
    ours = cycles(Slo(0.25), session, topology)
    session.stop()
    return report(
        "A latency objective on Spark: four operators, 32 replicas, a clock of 0.25 s",
        [
            Figure(f"a decision of presps for {OPERATORS} operators, longest", f"{presps:.2f} ms"),
            Figure(
                f"a decision of slo for {OPERATORS} operators, longest",
                f"{slo:.2f} ms",
                f"{DECISION_MS:.0f} ms",
                slo <= DECISION_MS,
            ),
            Figure("a whole cycle of pa-sps with auto, p95", f"{published.quantile(0.95):.2f} ms"),
            Figure("a whole cycle of slo with auto, median", f"{ours.quantile(0.5):.2f} ms"),
            Figure(
                "a whole cycle of slo with auto, p95",
                f"{ours.quantile(0.95):.2f} ms",
                f"{CYCLE_MS:.0f} ms",
                ours.quantile(0.95) <= CYCLE_MS,
            ),
            Figure("changes in these cycles", f"{ours.changes} in {CYCLES}"),
            Figure(
                "the loop's share of a core, with forecasts and samples",
                f"{ours.share:.1%}",
                f"{SHARE:.0%}",
                ours.share <= SHARE,
            ),
        ],
    )


if __name__ == "__main__":
    by_hand(main)
