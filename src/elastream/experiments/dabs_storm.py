"""DABS-Storm figures 12 to 17: AUTOSCALE+ and its two baselines.

Three topologies by two streams. Every change restarts the topology, events that wait for more than
30 s are lost, and decisions are taken every 10 s (table 2). Replicas share the 18 cores of the
paper's cluster. The values of the sensitive topologies follow a Zipf law with a skew of 1.5, and
all strategies have OSG there, as in the paper; a last row shows AUTOSCALE+ without it. Numbers are
means over five runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import accumulate

from elastream.control.run import Result, Run
from elastream.engines.simulation import Arrivals, SimulationSettings
from elastream.experiments.base import Claim, Experiment, Inputs, Row
from elastream.experiments.identity import identity
from elastream.experiments.pa_sps_setup import DOWNTIME
from elastream.experiments.rlearning_training import EPISODES, trained_on
from elastream.experiments.runs import PipelineRuns
from elastream.experiments.work import Curve
from elastream.policies.autoscale_plus import AutoscalePlus
from elastream.policies.base import Policy
from elastream.policies.incremental import Incremental
from elastream.policies.rlearning import RLearning
from elastream.predictors.regression import Regression
from elastream.workloads.applications import Application
from elastream.workloads.sensitive import complex_sensitive, simple_insensitive, simple_sensitive

TD, TIME_OUT, STEP = 10.0, 30.0, 1.0
CORES, RUNS = 18, 5
SPEED = 5.0
"""How many times as fast the streams are played on Spark: 20 minutes in 4."""
OBSERVED = ("insensitive", "sensitive")
"""The operators whose replicas the paper's figures show."""
MEASURES = ("processed_ratio", "latency_ms", "replica_seconds", "rescales")
NOTES = """\
The figures have no tables: only the losses given in the text are compared with measurements.
Neither the execution times, nor how they vary with the value, nor how long a restart took were \
published; all are guesses. With \
five seconds of downtime for every change, losses are in proportion to how often a strategy changes.
In the interval of a restart replicas are idle for half of the time, and operators downstream get \
half of their events. Strategies that look at the last interval alone take that for a low load, \
scale in, and restart again: many of the changes of both baselines come from there.
A loss is what a restart drops, and what has waited for more than 30 s at one operator."""

FASTEST = (
    Claim("latency_ms", "AUTOSCALE+", "incremental"),
    Claim("latency_ms", "AUTOSCALE+", "rlearning"),
)
FEWEST_LOST = (
    Claim("processed_ratio", "incremental", "AUTOSCALE+"),
    Claim("processed_ratio", "rlearning", "AUTOSCALE+"),
)

FIGURES: Mapping[int, tuple[Callable[[], Application], str]] = {
    12: (simple_insensitive, "progressive"),
    13: (simple_insensitive, "erratic"),
    14: (simple_sensitive, "progressive"),
    15: (simple_sensitive, "erratic"),
    16: (complex_sensitive, "progressive"),
    17: (complex_sensitive, "erratic"),
}
"""The topology and the stream of each."""

Losses = Mapping[str, float]


def figure_12() -> Experiment:
    """Simple insensitive, progressive."""
    losses = {"incremental": 0.29, "AUTOSCALE+": 0.07}
    claims = (*FASTEST, Claim("replica_seconds", "rlearning", "incremental"))
    return _figure(12, losses, claims)


def figure_13() -> Experiment:
    """Simple insensitive, erratic."""
    losses = {"rlearning": 0.13, "incremental": 0.19, "AUTOSCALE+": 0.18}
    claims = (Claim("replica_seconds", "rlearning", "incremental"),)
    return _figure(13, losses, claims)


def figure_14() -> Experiment:
    """Simple sensitive, progressive."""
    return _figure(14, {}, FASTEST)


def figure_15() -> Experiment:
    """Simple sensitive, erratic."""
    claims = (*FEWEST_LOST, Claim("replica_seconds", "rlearning", "incremental"))
    return _figure(15, {"AUTOSCALE+": 0.048}, claims)


def figure_16() -> Experiment:
    """Complex sensitive, progressive."""
    return _figure(16, {}, (*FASTEST, *FEWEST_LOST))


def figure_17() -> Experiment:
    """Complex sensitive, erratic."""
    return _figure(17, {}, (*FASTEST, *FEWEST_LOST))


def _figure(number: int, losses: Losses, claims: tuple[Claim, ...]) -> Experiment:
    application, trace = FIGURES[number]
    kind = application.__name__.replace("_", " ")
    title = f"DABS-Storm figure {number}: {kind} topology, {trace} stream"
    strategies: dict[str, Policy | None] = {
        "rlearning": None,
        "incremental": Incremental(),
        "AUTOSCALE+": AutoscalePlus(),
    }
    rows = [
        Row(
            label,
            in_figure(application, trace, policy),
            {"processed_ratio": 1 - losses[label]} if label in losses else {},
        )
        for label, policy in strategies.items()
    ]
    if application is not simple_insensitive:
        shuffled = in_figure(application, trace, AutoscalePlus(), grouping="shuffle")
        rows.append(Row("AUTOSCALE+, shuffle", shuffled))
    return Experiment(
        f"dabs-storm-{number}",
        title,
        (trace,),
        MEASURES,
        tuple(rows),
        NOTES,
        claims,
        runs=RUNS,
        spark_speed=SPEED,
    )


def in_figure(
    application: Callable[[], Application],
    trace: str,
    policy: Policy | None,
    cores: int | None = CORES,
    runs: int = RUNS,
    grouping: str | None = None,
) -> Callable[[Inputs], PipelineRuns]:
    """The runs of one row, with everything as in the figures.

    Args:
        application: What is run.
        trace: The name of the stream.
        policy: What scales it; None: `rlearning`, trained on the stream.
        cores: How many all replicas share.
        runs: How many of them.
        grouping: That of all operators, if not the one that is asked for.
    """

    def work(inputs: Inputs) -> PipelineRuns:
        inputs = replace(inputs, grouping=grouping or inputs.grouping)
        made, rates = inputs.application(application()), inputs.trace(trace)
        trained = cache(lambda: policy or trained_on(made, rates, TD))

        def run_under(chosen: Policy, seed: int) -> Run:
            settings = SimulationSettings(
                step=STEP,
                time_out=TIME_OUT,
                restart_downtime=DOWNTIME,
                cores=cores,
                arrivals=Arrivals.POISSON,
                seed=seed,
            )
            run = Run(made, rates, chosen, Regression(), td=TD, settings=settings)
            return inputs.paced(run)

        seeds = inputs.seeds(runs)
        first = run_under(policy or RLearning(), seeds[0])
        return PipelineRuns(
            lambda seed: run_under(trained(), seed),
            first.intervals,
            seeds,
            first.trace.duration,
            identity(first, policy=None if policy else f"rlearning, {EPISODES} episodes"),
            _curves,
        )

    return work


def _curves(result: Result) -> tuple[Curve, ...]:
    """The panels of every figure: the observed operator's replicas, latency, and what is lost."""
    times = [cycle.time for cycle in result.cycles]
    by_name = result.run.application.topology.by_name
    observed = next(name for name in by_name if name in OBSERVED)
    degree = [float(stats.operators[observed].active) for stats in result.stats]
    latency = [1000 * stats.latency.mean if stats.latency else None for stats in result.stats]
    lost = [sum(of.dropped for of in stats.operators.values()) for stats in result.stats]
    return (
        Curve(f"replicas of {observed}", times, degree),
        Curve("mean latency (ms)", times, latency, logarithmic=True),
        Curve("cumulated dephased tuples", times, list(accumulate(lost))),
    )
