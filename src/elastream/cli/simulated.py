"""From what a user types to what the simulator runs: a pipeline, and how its operators behave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from elastream.cli.own_pipeline import OwnPipeline
from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.service_times import Fixed
from elastream.core.topology import Operator, Topology
from elastream.errors import InvalidInputError
from elastream.workloads import APPLICATIONS
from elastream.workloads.applications import Application


def simulated_application(
    pipeline: str | None, app: str, pool: int | None, service_ms: float
) -> Application:
    """The application of that name, or a user's pipeline.

    Args:
        pipeline: FILE.py:NAME, if it is the user's own. What it does not declare is measured with
            events of its sources.
        app: The name of the application otherwise.
        pool: The size of all pools; by default as declared.
        service_ms: What an event takes: of an application, instead of what is declared, as its
            functions are quick; of a pipeline, in addition.
    """
    if not 0 <= service_ms < float("inf"):
        raise InvalidInputError(f"--service-ms {service_ms:g}: it must be 0 or more")
    if pool is not None and pool < 1:
        raise InvalidInputError(f"--pool {pool}: a pool has at least 1 replica")
    if pipeline is not None:
        return _own(OwnPipeline.named(pipeline), pool, service_ms / 1000)
    given: dict[str, Any] = {"execution_time": service_ms / 1000} if service_ms else {}
    if pool is not None:
        given["pool"] = pool
    return APPLICATIONS[app](**given)


def resized(topology: Topology, pool: int | None) -> Topology:
    """With another size of all pools, if given; their lanes follow."""
    if pool is None:
        return topology

    def changed(operator: Operator) -> Operator:
        return replace(operator, pool=max(pool, operator.minimum), lanes=None)

    return replace(topology, operators=tuple(map(changed, topology.operators)))


def _own(own: OwnPipeline, pool: int | None, more: float) -> Application:
    topology = resized(own.topology, pool)
    known = all(of.execution_time is not None for of in topology.operators)
    decided = any(edge.when is not None for edge in topology.edges)
    behaviour = Behaviour()
    if not (known or more) or decided:
        behaviour = _measured(own)
    operators = {}
    for name, operator in topology.by_name.items():
        seen = behaviour.operators.get(name)
        declared = operator.execution_time
        seconds = declared if declared is not None else seen.time.mean if seen else None
        if seconds is None and not more:
            continue  # The simulator says which one lacks it.
        time = Fixed((seconds or 0.0) + more)
        operators[name] = replace(seen, time=time) if seen else OperatorBehaviour(time)
    return Application(topology, Behaviour(operators, behaviour.splits))


def _measured(own: OwnPipeline) -> Behaviour:
    """How its functions behave on events of its sources, where it has functions to make them."""
    if own.makers.keys() != {source.name for source in own.topology.sources}:
        return Behaviour()
    from elastream.cli.rehearsal import rehearse

    found = rehearse(own.topology, own.makers)
    operators = {
        name: OperatorBehaviour(Fixed(of.seconds), of.selectivity)
        for name, of in found.operators.items()
        if of.seconds > 0
    }
    return Behaviour(operators, found.splits)
