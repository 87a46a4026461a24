"""`elastream.simulate`: try a policy on a trace in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from elastream.control import Cycle
from elastream.control.run import Result, Run, inputs_per_interval, step_for
from elastream.core.behaviour import Behaviour
from elastream.core.pipeline import Pipeline
from elastream.core.topology import Topology
from elastream.engines.base import WhenFull, one_of
from elastream.engines.simulation import SimulationSettings
from elastream.policies import POLICIES, Policy
from elastream.policies.guards import Guard
from elastream.predictors import Predictor
from elastream.running.choices import (
    check_times,
    chosen_guards,
    chosen_policy,
    chosen_predictor,
)
from elastream.running.traces import trace as chosen_trace
from elastream.workloads.applications import Application
from elastream.workloads.traces import Trace


def simulate(
    pipeline: Pipeline | Topology | Application,
    trace: Trace | str | Path = "spiky",
    *,
    policy: Policy | str = "slo",
    predictor: Predictor | str = "auto",
    td: float | None = None,
    sample: float = 1.0,
    look_back: int = 100,
    guards: Iterable[Guard | str] = (),
    initial: Mapping[str, int] | None = None,
    queue_size: int = 100_000,
    on_full: WhenFull | str = WhenFull.BLOCK,
    behaviour: Behaviour | None = None,
    settings: SimulationSettings | None = None,
    after_each: Callable[[Cycle], object] | None = None,
) -> Result:
    """Run a pipeline in the simulator: no Spark, and 22 minutes of input in seconds.

    Args:
        pipeline: Its operators need an `execution_time`, or a `behaviour`.
        trace: The input: a name from `elastream traces`, a CSV file, or `elastream.trace(...)`.
        policy: A name, or an object such as `elastream.slo("250 ms")`, which keeps that latency.
            The policy `oracle` knows the whole trace in advance.
        predictor: A name, or an object.
        td: The length of a control interval, in seconds. The default depends on the policy: 0.25
            for `slo`, 30 for the others.
        sample: The length of a sampling window, in seconds.
        look_back: How many samples the predictor sees.
        guards: Limits on the policy, such as `elastream.guard("cooldown", up=30, down=60)`.
        initial: Active replicas at the start, by operator. By default, what the policy wants for
            the first interval of the trace.
        queue_size: How many events may wait for an operator.
        on_full: What happens when a queue is full: `"block"` makes its producers wait, back to the
            source; `"drop"` loses events.
        behaviour: How long operators take and where events go, if the pipeline does not say.
        settings: All other conditions of the simulation. If you give them, `sample`, `initial`,
            `queue_size` and `on_full` are ignored.
        after_each: Called with every cycle of the control loop.

    Returns:
        What was measured and decided; `result.metrics` has the metrics of the whole run.

    Examples:
        >>> from elastream import Pipeline, simulate
        >>> pipeline = Pipeline("orders")
        >>> orders = pipeline.source("orders")
        >>> _ = pipeline.add(len, name="price", after=orders, pool=8, execution_time=0.0013)
        >>> result = simulate(pipeline, "spiky", policy="pa-sps", predictor="lr")
        >>> f"{result.metrics.processed_ratio:.0%}"
        '100%'
    """
    check_times(td=td, sample=sample)
    application = _application(pipeline, behaviour)
    rates = trace if isinstance(trace, Trace) else chosen_trace(trace)
    if policy == "oracle":
        length = Policy.td if td is None else td
        chosen: Policy = POLICIES["oracle"](future=inputs_per_interval(rates, length))
    else:
        chosen = chosen_policy(policy)
        length = chosen.td if td is None else td
    conditions = settings or SimulationSettings(
        step=step_for(length),
        sample=sample,
        initial=dict(initial or {}),
        queue_bound=queue_size,
        when_full=one_of(WhenFull, on_full, "on_full"),
    )
    run = Run(
        application,
        rates,
        chosen,
        chosen_predictor(predictor),
        length,
        look_back,
        settings=conditions,
        guards=chosen_guards(guards),
    )
    return run.ready().simulate(after_each)


def _application(
    given: Pipeline | Topology | Application, behaviour: Behaviour | None
) -> Application:
    if isinstance(given, Application):
        return given if behaviour is None else Application(given.topology, behaviour)
    topology = given.topology() if isinstance(given, Pipeline) else given
    return Application(topology, behaviour or Behaviour())
