"""What a run on Spark is, in words and numbers: the same for the same run of any experiment."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from elastream.control.run import Run
from elastream.workloads.applications import Application


def identity(run: Run, policy: str | None = None, predictor: str | None = None) -> dict[str, Any]:
    """All that decides what the run does on Spark, but its seed; as JSON gives it back.

    Args:
        run: The run, at its speed.
        policy: What to say of one that is yet to be trained.
        predictor: The same of a model.
    """
    settings = run.settings
    return {
        "application": run.application.topology.name,
        "operators": _operators(run.application),
        "trace": _digest(run.trace.values.tobytes()),
        "step": run.trace.step,
        "policy": policy or repr(run.policy),
        "predictor": predictor or run.predictor.name,
        "td": run.td,
        "look_back": run.look_back,
        "throughput_window": run.throughput_window,
        "sample": settings.sample,
        "queue_bound": settings.queue_bound,
        "when_full": settings.when_full.value,
        "restart_downtime": settings.restart_downtime,
        "cores": settings.cores,
        "arrivals": settings.arrivals.value,
        "initial": dict(settings.initial),
    }


def _operators(application: Application) -> dict[str, list[Any]]:
    """Pool, least replicas, grouping, execution time and what is put out, of every operator."""
    topology, behaviour = application.topology, application.behaviour
    found = {}
    for of in topology.operators:
        acts = behaviour.of(topology, of.name)
        time = _digest(repr(acts.time).encode())
        edges = {edge.origin: edge.share for edge in topology.incoming[of.name]}
        grouping = f"{of.router!r} {of.key}" if of.key else repr(of.router)
        found[of.name] = [
            of.pool,
            of.minimum,
            grouping,
            acts.time.mean,
            time,
            acts.selectivity,
            edges,
        ]
    return found


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]
