"""A latency objective on Spark: eight fixed replicas, PA-SPS as published, and `slo`, in turn.

Four operators in a line that wait 1.317 ms for every event, pools of 8: the PA-SPS evaluation, four
times as fast. `slo` must keep a p99 of 400 ms, or 1.2 times that of the fixed replicas if that is
higher, and save half of the replicas on the whole trace. Part of it, where it moves most and half
may be out of reach, takes 90 s per contender; there `slo` must save at least as much as PA-SPS:
`python -m benchmarks.spark.objective [--trace FILE] [--whole] [--rounds N] [--objective-ms MS]`.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import elastream
from benchmarks.command import described
from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import events, line
from elastream import Topology
from elastream.control.run import Result, Run
from elastream.core.behaviour import Behaviour
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.policies import POLICIES, Policy
from elastream.policies.slo import Slo
from elastream.predictors import PREDICTORS
from elastream.workloads.applications import Application
from elastream.workloads.traces import Trace, evenly

SERVICE_SECONDS = 0.001317
OPERATORS, POOL, SPEED, SECONDS = 4, 8, 4.0, 90.0
LATENCY_MS, BESIDE_FIXED, SAVED = 400.0, 1.2, 0.50
FIXED, PUBLISHED, OURS = "eight fixed replicas", "pa-sps with ann, every 7.5 s", "slo with auto"


def wait(table: pa.Table) -> pa.Table:
    """Take the service time, and no processor."""
    time.sleep(SERVICE_SECONDS * table.num_rows)
    return table


@dataclass(frozen=True)
class Contender:
    """How one of them is run."""

    policy: Policy
    predictor: str
    td: float
    sample: float
    look_back: int = 12


def contenders(objective_ms: float) -> dict[str, Contender]:
    """The three; PA-SPS with its 30 s and its 12 samples of 5 s, four times as fast."""
    return {
        FIXED: Contender(POLICIES["static"](replicas=POOL), "basic", 1.0, 1.0),
        PUBLISHED: Contender(POLICIES["pa-sps"](), "ann", 30 / SPEED, 5 / SPEED),
        OURS: Contender(Slo(objective_ms / 1000), "auto", Slo.td, 1.0, 100),
    }


def steepest(trace: Trace, seconds: float) -> Trace:
    """The part of the trace, so long, in which the rate moves most."""
    length = round(seconds / trace.step)
    moves = np.abs(np.diff(trace.values))
    if length >= len(moves):
        return trace
    first = int(np.convolve(moves, np.ones(length), "valid").argmax())
    return evenly(trace.values[first : first + length], trace.step)


def on_spark(topology: Topology, trace: Trace, of: Contender, session: SparkSession) -> Result:
    """One run; those that scale begin with enough for the first rate."""
    enough = min(math.ceil(trace.rates[0] * SERVICE_SECONDS), POOL)
    first = POOL if of.policy.name == "static" else enough
    model = PREDICTORS[of.predictor]()
    with tempfile.TemporaryDirectory() as folder:
        run = elastream.run(
            topology,
            {"events": TraceSource(events, trace.step, trace.rates)},
            state=Path(folder),
            policy=of.policy,
            predictor=model,
            td=of.td,
            sample=of.sample,
            look_back=of.look_back,
            initial=dict.fromkeys(topology.by_name, first),
            session=session,
            say=lambda words: None,
        )
        cycles = tuple(run.follow())
    application = Application(topology, Behaviour())
    return Result(Run(application, trace, of.policy, model, of.td, of.look_back), cycles)


def p99_ms(result: Result) -> float:
    """Of the whole run."""
    latency = result.metrics.latency_ms
    return latency.p99 if latency else math.inf


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = described(__doc__)
    parser.add_argument("--trace", default="spiky", help="a name, or a CSV file time,value")
    parser.add_argument("--whole", action="store_true", help="all of it, not the steepest part")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the steepest part")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--objective-ms", type=float, default=LATENCY_MS)
    parser.add_argument("--only", type=_beginning, help="one of the three, by how its name begins")
    return parser.parse_args(arguments)


def _beginning(text: str) -> str:
    names = (FIXED, PUBLISHED, OURS)
    if not any(name.startswith(text) for name in names):
        raise argparse.ArgumentTypeError(f"{text!r} begins none of {', '.join(map(repr, names))}")
    return text


def main(arguments: Sequence[str] | None = ()) -> bool:
    """Print what each saved and how long events took."""
    asked = _asked(arguments)
    topology = line(OPERATORS, POOL, wait, execution_time=SERVICE_SECONDS)
    trace = elastream.trace(asked.trace, speed=SPEED)
    played = trace if asked.whole else steepest(trace, asked.seconds)
    session = elastream.session(topology)
    figures, good = [], True
    for _ in range(asked.rounds):
        fixed_ms, least_saved = 0.0, SAVED if asked.whole else 0.0
        for name, of in contenders(asked.objective_ms).items():
            if asked.only and not name.startswith(asked.only):
                continue
            result = on_spark(topology, played, of, session)
            measured, p99 = result.metrics, p99_ms(result)
            fixed_ms = p99 if name == FIXED else fixed_ms
            if name == PUBLISHED and not asked.whole:
                least_saved = min(measured.saved_resources, SAVED)
            latency = measured.latency_ms
            told = (
                f"{measured.saved_resources:.3f} saved, {measured.processed_ratio:.1%} processed, "
                f"mean {latency.mean if latency else math.nan:,.0f} ms, p99 {p99:,.0f} ms, "
                f"{measured.rescales:,} changes"
            )
            if name != OURS:
                figures.append(Figure(name, told))
                continue
            most = max(LATENCY_MS, BESIDE_FIXED * fixed_ms)
            target = f"p99 {most:,.0f} ms, {least_saved:.3f} saved"
            met = p99 <= most and measured.saved_resources >= least_saved
            good = good and met
            figures.append(Figure(name, told, target, met))
    session.stop()
    report(f"A latency objective on Spark: {played.duration:.0f} s, {OPERATORS} x {POOL}", figures)
    return good


if __name__ == "__main__":
    raise SystemExit(not main(None))
