"""The training phase of `rlearning`: the rates that every operator meets when a trace is played."""

from __future__ import annotations

import numpy as np

from elastream.control.run import inputs_per_interval
from elastream.policies.rlearning import RLearning
from elastream.workloads.applications import Application
from elastream.workloads.traces import Trace


def trained_on(
    application: Application, trace: Trace, td: float, rounds: int = 20, seed: int = 0
) -> RLearning:
    """The policy with what a trace teaches about an application, one rate per interval."""
    topology, behaviour = application.topology, application.behaviour
    rates = np.array(inputs_per_interval(trace, td)) / td
    sent = {source.name: rates for source in topology.sources}
    received = {}
    for name in topology.order:
        if name in topology.by_name:
            parts = [sent[edge.origin] * behaviour.share(edge) for edge in topology.incoming[name]]
            received[name] = np.sum(parts, axis=0)
            sent[name] = received[name] * behaviour.of(topology, name).selectivity
    times = {name: behaviour.of(topology, name).time.mean for name in topology.by_name}
    return RLearning.train(topology.by_name, received, times, rounds, seed)
