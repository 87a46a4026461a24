"""BGElasor figures 4 and 5: cost, changes and latency of its three algorithms."""

from __future__ import annotations

from functools import cache
from itertools import accumulate

import numpy as np

from elastream.control.run import Result, Run, step_for
from elastream.core.behaviour import Behaviour
from elastream.core.equations.bgelasor import cost
from elastream.core.equations.pa_sps import replicas
from elastream.core.pipeline import Pipeline
from elastream.engines.simulation import SimulationSettings
from elastream.experiments.base import Claim, Experiment, Inputs, Row
from elastream.experiments.identity import identity
from elastream.experiments.known_future import KnownFuture
from elastream.experiments.runs import PipelineRuns
from elastream.experiments.work import Curve
from elastream.policies.base import Policy
from elastream.policies.bgelasor import Cba, Spea, Srea
from elastream.predictors.base import Predictor
from elastream.predictors.basic import Basic
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.model import Origin
from elastream.predictors.recurrent.split import Split
from elastream.workloads.applications import Application, unchanged
from elastream.workloads.traces import Trace

DAY = 86_400.0
TRAINED, DAYS, POOL = 21, 3, 8
WINDOW, HORIZON, HIDDEN, EPOCHS = 36, 6, 32, 12
SPEED = 300.0
"""How many times as fast the load is played on Spark: three days in a quarter of an hour."""
MEASURES = (
    "cost",
    "extra_cost",
    "first_cost",
    "rescales",
    "late_changes",
    "latency_ms",
    "saved_resources",
)
BASELINE = "SPEA"
EARLY = 10
"""After this epoch SREA is said to start and stop more than the others."""
CLAIMS = (
    Claim("first_cost", "SREA", "SPEA"),
    Claim("first_cost", "SREA", "CBA"),
    Claim("cost", "CBA", "SPEA"),
    Claim("rescales", "CBA", "SPEA"),
    Claim("late_changes", "SPEA", "SREA"),
    Claim("late_changes", "CBA", "SREA"),
    Claim("latency_ms", "CBA", "SPEA"),
    Claim("latency_ms", "CBA", "SREA"),
    Claim("latency_ms", "SPEA", "SREA"),
)
NOTES = f"""\
The figures have no numbers in the text; its claims are checked as orderings. That SREA costs less \
it says of epochs 0 and 1 only; costs are drawn relative to those of SPEA, as in figure 4.
Each operator has its own BiGRU, as in the paper; there is one operator. It is trained on the \
first {TRAINED} days of the load, with a window of {WINDOW} intervals; the {DAYS} days after them \
are run, beginning with as many replicas as the first interval needs. For the first {WINDOW} \
intervals of these it has too little history, and the load as it was stands in.
CBA saves by not stopping what it will soon start again: to stop and start a replica costs 10,100, \
to keep it for an interval 8,000. The extra cost is that of equation 9: what was spent beyond the \
fewest replicas that the load allowed, and beyond none where there were fewer.
An execution time with which the peak needs seven of eight replicas."""


def experiment() -> Experiment:
    """One operator under each algorithm, an interval being what the paper calls an epoch."""
    rows = (
        *(_row(policy) for policy in (Srea(), Spea(), Cba())),
        *(_row(policy, perfect=True) for policy in (Spea(), Cba())),
    )
    title = "BGElasor figures 4 and 5: SREA, SPEA and CBA with BiGRU"
    return Experiment(
        "bgelasor-4-5",
        title,
        ("periodic",),
        MEASURES,
        rows,
        NOTES,
        CLAIMS,
        trains=True,
        spark_speed=SPEED,
    )


def _row(policy: Policy, perfect: bool = False) -> Row:
    """An algorithm with its model, or with a forecast that is always right."""
    label = policy.name.upper() + (", perfect forecast" if perfect else "")
    # What an operator receives on Spark in an interval is never quite what the load says.
    return Row(label, lambda inputs: _work(inputs, policy, perfect), simulator_only=perfect)


def _work(inputs: Inputs, policy: Policy, perfect: bool) -> PipelineRuns:
    whole = inputs.trace("periodic").first((TRAINED + DAYS) * DAY)
    learned = round(TRAINED * DAY / whole.step)
    load = Trace(whole.times[learned:] - whole.times[learned], whole.values[learned:], whole.step)
    each = (POOL - 1) / float(load.rates.max())
    pipeline = Pipeline("bgelasor")
    after = pipeline.source("load")
    pipeline.add(unchanged, name="operator", after=after, pool=POOL, execution_time=each)
    application = inputs.grouped(Application(pipeline.topology(), Behaviour()))

    def run_with(predictor: Predictor, seed: int) -> Run:
        settings = SimulationSettings(
            step=step_for(load.step),
            sample=load.step,
            queue_bound=1e9,
            initial={"operator": replicas(float(load.values[0]), each, load.step, 1, POOL)},
            seed=seed,
        )
        made = Run(application, load, policy, predictor, load.step, WINDOW, settings=settings)
        return inputs.paced(made)

    past = tuple(whole.values[:learned].tolist())
    seeds = inputs.seeds()
    first = run_with(Basic(), seeds[0])

    def predictor(seed: int) -> Predictor:
        return KnownFuture(load.values.tolist()) if perfect else trained_bigru(past, seed)

    model = KnownFuture.name if perfect else f"bigru, {TRAINED} days, {EPOCHS} epochs"
    return PipelineRuns(
        lambda seed: run_with(predictor(seed), seed),
        first.intervals,
        seeds,
        first.trace.duration,
        identity(first, predictor=model),
        _curves,
        _also,
    )


@cache
def trained_bigru(series: tuple[float, ...], seed: int) -> Predictor:
    """The model of one operator, trained on what it received before; once for all algorithms."""
    from elastream.predictors.recurrent import BiGru
    from elastream.predictors.recurrent.training import train

    architecture = Architecture("bigru", window=WINDOW, horizon=HORIZON, hidden=HIDDEN)
    split = Split(train=0.85, validation=0.15)
    return BiGru.of(
        train(
            series, architecture, Origin("periodic", 300.0), split=split, epochs=EPOCHS, seed=seed
        )
    )


def _schedule(result: Result) -> list[int]:
    """The replicas of the operator, interval by interval."""
    (operator,) = result.run.application.topology.operators
    return [stats.operators[operator.name].active for stats in result.stats]


def _also(result: Result) -> dict[str, float]:
    """What the text says of the first epochs, and of those after the tenth."""
    schedule = _schedule(result)
    return {
        "first_cost": cost(schedule[:2]),
        "late_changes": float(np.abs(np.diff(schedule[EARLY:])).sum()),
    }


def _curves(result: Result) -> tuple[Curve, ...]:
    """Capacity and relative costs as in figure 4, changes and latency as in figure 5."""
    times = [cycle.time for cycle in result.cycles]
    (operator,) = result.run.application.topology.operators
    schedule = _schedule(result)
    received = [stats.operators[operator.name].received for stats in result.stats]
    capacity = [active * result.run.td / (operator.execution_time or 1.0) for active in schedule]
    total = [cost(schedule[: epoch + 1]) for epoch in range(len(schedule))]
    own = np.diff([0.0, *total]).tolist()
    changes = [0, *np.abs(np.diff(schedule)).tolist()]
    latency = [1000 * each.latency.mean if each.latency else None for each in result.stats]
    return (
        Curve("capacity (events per epoch)", times, capacity, given=received),
        Curve("cost of the epoch", times, own, relative_to=BASELINE),
        Curve("cost so far", times, total, relative_to=BASELINE),
        Curve("replicas started and stopped, so far", times, list(accumulate(map(float, changes)))),
        Curve("mean latency (ms)", times, latency, logarithmic=True),
    )
