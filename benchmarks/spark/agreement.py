"""The simulator and Spark side by side: the same trace, policy and execution times."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pyarrow as pa

from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import events, line
from elastream import Topology
from elastream.control import ControlLoop
from elastream.control.run import Result, Run
from elastream.core.behaviour import Behaviour
from elastream.core.joining import joined
from elastream.core.measured import measured_behaviour
from elastream.engines.simulation import SimulationSettings
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.policies.pa_sps import PaSps
from elastream.predictors.linear import Lr
from elastream.workloads.applications import Application
from elastream.workloads.choice import chosen_trace
from elastream.workloads.traces import Trace, evenly

SERVICE_SECONDS = 0.004
OPERATORS, POOL, TD, SAMPLE, SECONDS = 3, 6, 5.0, 5.0 / 6, 120.0
PEAK = 900.0
SAVED, PROCESSED = 0.05, 0.01


def wait(table: pa.Table) -> pa.Table:
    """Take the service time, and no processor."""
    time.sleep(SERVICE_SECONDS * table.num_rows)
    return table


def spikes() -> Trace:
    """The trace `spiky` in two minutes, with a peak that four replicas can just take."""
    rates = chosen_trace("spiky").rates
    step = SECONDS / len(rates)
    return evenly(rates * PEAK / rates.max() * step, step)


def on_spark(topology: Topology, trace: Trace) -> Result:
    """The run with real events."""
    with tempfile.TemporaryDirectory() as folder:
        source = TraceSource(events, trace.step, trace.rates)
        engine = SparkEngine(topology, {"events": source}, Path(folder), sample=SAMPLE)
        loop = ControlLoop(engine, PaSps(), Lr(), td=TD, look_back=12)
        cycles = tuple(loop.run(until=trace.duration))
        engine.close()
        engine.session.stop()
    return Result(Run(Application(topology, Behaviour()), trace, PaSps(), Lr(), TD, 12), cycles)


def simulated(real: Result) -> Result:
    """The same run in virtual time, with the execution times that were measured."""
    topology, trace = real.run.application.topology, real.run.trace
    behaviour = measured_behaviour(topology, joined(real.stats, 0))
    settings = SimulationSettings(sample=SAMPLE)
    application = Application(topology, behaviour)
    return Run(application, trace, PaSps(), Lr(), TD, 12, settings=settings).simulate()


def main() -> bool:
    """Print both and their differences."""
    topology = line(OPERATORS, POOL, wait, execution_time=SERVICE_SECONDS)
    real = on_spark(topology, spikes())
    both = real.metrics, simulated(real).metrics
    saved, processed = (
        [getattr(of, name) for of in both] for name in ("saved_resources", "processed_ratio")
    )
    apart = abs(saved[0] - saved[1]), abs(processed[0] - processed[1])
    return report(
        f"Spark and the simulator: {OPERATORS} operators, {SECONDS:.0f} s of spikes, pa-sps",
        [
            Figure("resources saved on Spark", f"{saved[0]:.3f}"),
            Figure("simulated", f"{saved[1]:.3f}"),
            Figure("apart", f"{apart[0]:.3f}", f"{SAVED}", apart[0] <= SAVED),
            Figure("events processed on Spark", f"{processed[0]:.2%}"),
            Figure("simulated", f"{processed[1]:.2%}"),
            Figure("apart", f"{apart[1]:.2%}", f"{PROCESSED:.0%}", apart[1] <= PROCESSED),
        ],
    )


if __name__ == "__main__":
    raise SystemExit(not main())
