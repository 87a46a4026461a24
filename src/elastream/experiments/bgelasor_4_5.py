"""BGElasor figures 4 and 5: cost, changes and latency of its three algorithms."""

from __future__ import annotations

from elastream.control.run import Run, step_for
from elastream.core.behaviour import Behaviour
from elastream.core.pipeline import Pipeline
from elastream.engines.simulation import SimulationSettings
from elastream.experiments.base import Claim, Experiment, Inputs, Row
from elastream.experiments.simulated import Simulated
from elastream.policies.base import Policy
from elastream.policies.bgelasor import Cba, Spea, Srea
from elastream.predictors.linear import Lr
from elastream.workloads.applications import Application, unchanged

DAYS, POOL, LOOK_BACK = 3, 8, 6
MEASURES = ("cost", "rescales", "latency_ms", "saved_resources")
CLAIMS = (
    Claim("cost", "CBA", "SPEA"),
    Claim("rescales", "CBA", "SPEA"),
    Claim("cost", "SREA", "SPEA"),
    Claim("latency_ms", "SPEA", "SREA"),
    Claim("latency_ms", "CBA", "SREA"),
)
NOTES = """\
The figures have no numbers in the text; its claims are checked as orderings.
CBA saves by not stopping what it will soon start again: to stop and start a replica costs 10,100, \
to keep it for an epoch 8,000. A smooth daily swing has few dips of a single epoch, so there is \
little for it to save.
The paper forecasts with BiGRU. Here a linear trend over the last six epochs does, which needs no \
training; what a better model changes, 'elastream simulate' with --trained can tell.
Three days of the load; an execution time with which its peak needs seven of eight replicas."""


def experiment() -> Experiment:
    """One operator under each algorithm, with an epoch as the interval."""
    rows = tuple(_row(policy) for policy in (Srea(), Spea(), Cba()))
    title = "BGElasor figures 4 and 5: SREA, SPEA and CBA"
    return Experiment("bgelasor-4-5", title, ("periodic",), MEASURES, rows, NOTES, CLAIMS)


def _row(policy: Policy) -> Row:
    return Row(policy.name.upper(), lambda inputs: _simulated(inputs, policy))


def _simulated(inputs: Inputs, policy: Policy) -> Simulated:
    load = inputs.trace("periodic").first(DAYS * 86_400)
    pipeline = Pipeline("bgelasor")
    each = (POOL - 1) / float(load.rates.max())
    after = pipeline.source("load")
    pipeline.add(unchanged, name="operator", after=after, pool=POOL, execution_time=each)
    application = Application(pipeline.topology(), Behaviour())
    settings = SimulationSettings(
        step=step_for(load.step), sample=load.step, queue_bound=1e9, seed=inputs.seed
    )
    run = Run(application, load, policy, Lr(), load.step, LOOK_BACK, settings=settings)
    return Simulated(run)
