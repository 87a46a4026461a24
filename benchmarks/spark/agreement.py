"""The simulator and Spark side by side: the same trace, policy and execution times."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from elastream.control.run import Result, Run
from elastream.core.behaviour import measured_behaviour
from elastream.core.joining import joined
from elastream.engines.simulation import SimulationSettings
from elastream.engines.simulation.spark_costs import as_on_spark
from elastream.engines.spark.driver.preflight import slots_for
from elastream.engines.spark.driver.session import new_session
from elastream.experiments.on_spark import OnSpark
from elastream.policies.pa_sps import PaSps
from elastream.predictors.linear import Lr
from elastream.workloads.applications import Application, twitter
from elastream.workloads.choice import chosen_trace
from elastream.workloads.traces import evenly

SERVICE_SECONDS = 0.004
POOL, TD, SAMPLE, SECONDS = 6, 5.0, 5.0 / 6, 120.0
PEAK = 900.0
SAVED, PROCESSED, LATENCY = 0.05, 0.01, 2.0


def asked() -> Run:
    """The trace `spiky` in two minutes, with a peak that four replicas can just take."""
    rates = chosen_trace("spiky").rates
    step = SECONDS / len(rates)
    trace = evenly(rates * PEAK / rates.max() * step, step)
    settings = SimulationSettings(sample=SAMPLE, step=0.05)
    return Run(twitter(SERVICE_SECONDS, POOL), trace, PaSps(), Lr(), TD, 12, settings=settings)


def simulated(real: Result) -> Result:
    """The same run in virtual time, with the execution times that were measured."""
    topology = real.run.application.topology
    application = Application(topology, measured_behaviour(topology, joined(real.stats, 0)))
    settings = as_on_spark(real.run.settings)
    return replace(real.run, application=application, settings=settings).simulate()


def main() -> bool:
    """Print both and their differences."""
    run = asked()
    session = new_session(slots_for(run.application.topology, 0, 0))
    try:
        real = OnSpark(session)(run, lambda cycle: None)
    finally:
        session.stop()
    both = real.metrics, simulated(real).metrics
    saved, processed = (
        [getattr(of, name) for of in both] for name in ("saved_resources", "processed_ratio")
    )
    latency = [of.latency_ms.mean if of.latency_ms else 0.0 for of in both]
    apart = abs(saved[0] - saved[1]), abs(processed[0] - processed[1])
    factor = max(latency) / max(min(latency), 1e-9)
    return report(
        f"Spark and the simulator: four operators, {SECONDS:.0f} s of spikes, pa-sps",
        [
            Figure("resources saved on Spark", f"{saved[0]:.3f}"),
            Figure("simulated", f"{saved[1]:.3f}"),
            Figure("apart", f"{apart[0]:.3f}", f"{SAVED}", apart[0] <= SAVED),
            Figure("events processed on Spark", f"{processed[0]:.2%}"),
            Figure("simulated", f"{processed[1]:.2%}"),
            Figure("apart", f"{apart[1]:.2%}", f"{PROCESSED:.0%}", apart[1] <= PROCESSED),
            Figure("mean latency on Spark", f"{latency[0]:,.0f} ms"),
            Figure("simulated", f"{latency[1]:,.0f} ms"),
            Figure("factor", f"{factor:.2f}", f"{LATENCY:g}", factor <= LATENCY),
        ],
    )


if __name__ == "__main__":
    by_hand(main)
