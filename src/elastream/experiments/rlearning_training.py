"""The training phase of `rlearning`: episodes in the simulator, on the trace that is to come.

As in DABS-Storm section 7.2, where the knowledge base is acquired with the test streams themselves.
"""

from __future__ import annotations

from dataclasses import replace

from elastream.control.run import Run, step_for
from elastream.core.service_times import Fixed
from elastream.engines.simulation import SimulationSettings
from elastream.policies.rlearning import RLearning
from elastream.predictors.basic import Basic
from elastream.workloads.applications import Application
from elastream.workloads.traces import Trace

EPISODES = 20
MOST_EXPLORED, LEAST_EXPLORED = 1.0, 0.1


def trained_on(
    application: Application, trace: Trace, td: float, episodes: int = EPISODES, seed: int = 0
) -> RLearning:
    """The policy after this many runs of the trace, which explore less and less.

    An episode restarts nothing and drops nothing, and every event takes the mean: what is learned
    is what a rate needs.
    """
    topology, behaviour = application.topology, application.behaviour
    even = {name: behaviour.of(topology, name) for name in topology.by_name}
    even = {name: replace(of, time=Fixed(of.time.mean)) for name, of in even.items()}
    plain = Application(topology, replace(behaviour, operators=even))
    settings = SimulationSettings(step=step_for(td), sample=td, queue_bound=1e9, seed=seed)
    policy = RLearning()
    for episode in range(episodes):
        part = episode / max(episodes - 1, 1)
        explore = MOST_EXPLORED + part * (LEAST_EXPLORED - MOST_EXPLORED)
        exploring = RLearning(policy.table, explore, seed=seed * episodes + episode)
        run = Run(plain, trace, exploring, Basic(), td, settings=settings)
        policy = policy.after(run.simulate().stats, topology.operators)
    return policy
