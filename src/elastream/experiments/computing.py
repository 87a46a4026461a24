"""Operators that wait in place of computing, as if they computed on the cores of a paper.

While an operator waits it uses no processor, and the machine is not the one of the paper. What a
replica would use of its core is the time for which it was busy; which replicas share a core is what
the simulator says, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from elastream.core.decision import Plan
from elastream.core.health import Health
from elastream.core.stats import IntervalStats, OperatorStats, ReplicaStats
from elastream.core.topology import Topology
from elastream.engines.base import Clock, Engine, Watcher, health_of
from elastream.engines.simulation.cores import Cores


class AsIfComputing:
    """An engine whose replicas report the cores that they stand for.

    Args:
        engine: What runs the operators that wait.
        cores: How many cores all replicas share.
    """

    def __init__(self, engine: Engine, cores: int) -> None:
        self._engine = engine
        self._cores = Cores(engine.topology, cores)

    @property
    def topology(self) -> Topology:
        """Of the engine."""
        return self._engine.topology

    @property
    def clock(self) -> Clock:
        """Of the engine."""
        return self._engine.clock

    def observe(self) -> IntervalStats:
        """What the engine measured, with processors."""
        stats = self._engine.observe()
        operators = {
            name: self._computing(name, of, stats.duration) for name, of in stats.operators.items()
        }
        return replace(stats, operators=operators)

    def apply(self, plan: Plan) -> None:
        """Let the engine do it."""
        self._engine.apply(plan)

    def watch(self, watcher: Watcher) -> None:
        """Let the engine report."""
        self._engine.watch(watcher)

    def health(self) -> Health:
        """Of the engine."""
        return health_of(self._engine)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def _computing(self, name: str, of: OperatorStats, duration: float) -> OperatorStats:
        cores = self._cores.of(name) or ()
        replicas: Mapping[int, ReplicaStats] = {
            number: replace(replica, cpu=replica.busy / duration, core=cores[number])
            for number, replica in of.replicas.items()
        }
        return replace(of, replicas=replicas)
