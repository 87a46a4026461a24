"""From what a user types to what Spark runs: a pipeline, and the events of its sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elastream.cli.own_pipeline import OwnPipeline, Sources, makers_of
from elastream.cli.simulated import resized
from elastream.core.behaviour import Behaviour
from elastream.core.topology import Operator, Topology
from elastream.engines.spark.worker.deployment import send_by_value
from elastream.errors import InvalidInputError
from elastream.running import PipelineRun
from elastream.running.state import made_private
from elastream.running.traces import replay
from elastream.workloads import LIVE_APPLICATIONS
from elastream.workloads.applications import Application, Step
from elastream.workloads.service_time import with_service_time
from elastream.workloads.traces import Trace, evenly

APPLICATION_POOL = 4
"""Replicas in the pools of an application, by default."""


@dataclass(frozen=True)
class Target(Application):
    """A pipeline, and where its events come from and go to."""

    given: Sources
    """By source: a function that makes events at the trace's rates, or what `elastream.run` takes;
    or a function of the Spark session that returns all of them."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    sinks: Callable[[PipelineRun], object] | None = None
    """Starts the queries that read the outputs."""

    def sources(self, spark: Any, trace: Trace) -> tuple[dict[str, Any], bool]:
        """What feeds every source, and whether any plays the trace; several share it evenly."""
        given = self.given(spark) if callable(self.given) else self.given
        makers = [name for name, of in given.items() if callable(of)]
        share = evenly(trace.values / max(len(makers), 1), trace.step)
        sources = {name: replay(of, share) if name in makers else of for name, of in given.items()}
        return sources, bool(makers)


def chosen_target(
    pipeline: str | None, app: str, pool: int | None, service_ms: float, folder: Path
) -> Target:
    """The application of that name, which stores into the state folder, or a user's pipeline."""
    if pipeline is not None:
        return _from_file(pipeline, pool, service_ms)
    made_private(folder)
    known = {"execution_time": service_ms / 1000} if service_ms else {}
    made = LIVE_APPLICATIONS[app](
        folder / f"{app}.db", service_ms=service_ms, pool=pool or APPLICATION_POOL, **known
    )
    return Target(made.topology, made.behaviour, made.generators)


def benchmarked(target: Target) -> Target:
    """The same, its operators declared to take what they take here: PA-SPS' et before it runs.

    The functions run on events of the sources, so what they write elsewhere they write.
    """
    from elastream.cli.rehearsal import rehearse

    makers = makers_of(target.given)
    unmade = ", ".join(of.name for of in target.topology.sources if of.name not in makers)
    if unmade:
        raise InvalidInputError(
            f"--benchmark: there is no function make(first, count) that makes events for {unmade}"
        )
    found = rehearse(target.topology, makers).operators
    times = {name: of.seconds for name, of in found.items() if of.seconds > 0}
    operators = tuple(
        replace(of, execution_time=times.get(of.name, of.execution_time))
        for of in target.topology.operators
    )
    return replace(target, topology=replace(target.topology, operators=operators))


def _from_file(target: str, pool: int | None, service_ms: float) -> Target:
    own = OwnPipeline.named(target)
    file = own.module.__file__
    if own.sources is None:
        raise InvalidInputError(
            f"{file}: it needs a dictionary 'sources' from the name of each source to a function "
            "make(first, count) that returns a pyarrow.Table of events, or to an iterable of "
            "batches; or a function sources(spark) that returns such a dictionary, also with "
            "streaming DataFrames"
        )
    outputs, sinks = getattr(own.module, "outputs", {}), getattr(own.module, "sinks", None)
    if outputs and not callable(sinks):
        raise InvalidInputError(
            f"{file}: nothing reads its 'outputs', so its operators would soon wait for ever: "
            "define a function sinks(run) that starts a query on run[operator] for each"
        )
    send_by_value(own.module)
    topology = _slowed(resized(own.topology, pool), service_ms)
    return Target(topology, Behaviour(), own.sources, outputs, sinks)


def _slowed(topology: Topology, service_ms: float) -> Topology:
    """With a wait for every event."""

    def changed(operator: Operator) -> Operator:
        step = Step(operator.function, operator.setup, operator.teardown)
        return replace(operator, function=with_service_time(step, service_ms).function)

    return replace(topology, operators=tuple(map(changed, topology.operators)))
