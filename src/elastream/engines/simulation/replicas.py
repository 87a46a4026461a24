"""Which replicas are active when: plans take effect at once, after a delay, or by a restart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from elastream.core.decision import Plan
from elastream.core.topology import Topology
from elastream.engines.simulation.settings import SimulationSettings
from elastream.errors import InvalidInputError


class ReplicaSchedule:
    """The active replicas of every operator over time."""

    def __init__(self, topology: Topology, settings: SimulationSettings) -> None:
        self._topology = topology
        self._delay = settings.activation_delay
        self._downtime = settings.restart_downtime
        self.down_until = 0.0
        """When the pipeline is back after the last restart."""
        self._check(settings.initial)
        self.active = {
            name: settings.initial.get(name, operator.minimum)
            for name, operator in topology.by_name.items()
        }
        self._due: dict[str, tuple[float, int]] = {}
        """Activations that have not taken effect: when, and how many replicas are active then."""

    def apply(self, plan: Plan, now: float) -> None:
        """Take a plan: deactivation is immediate, activation takes its time."""
        self._check(plan.replicas)
        target = self.active | {name: count for name, (_, count) in self._due.items()}
        changes = plan.changes(target)
        if changes and self._downtime is not None:
            self.down_until = now + self._downtime
        for change in changes:
            name, after = change.operator, change.after
            self._due.pop(name, None)
            if after <= self.active[name] or self._delay == 0:
                self.active[name] = after
            else:
                self._due[name] = now + self._delay, after

    def breaks(self, start: float, end: float) -> list[float]:
        """The times at which something changes between start and end."""
        times = [time for time, _ in self._due.values()] + [self.down_until]
        return [time for time in times if start < time < end]

    def profile(self, name: str, starts: NDArray[np.float64]) -> NDArray[np.int64]:
        """Active replicas in the steps that start at these times."""
        active = np.full(len(starts), self.active[name], dtype=np.int64)
        if name in self._due:
            time, count = self._due[name]
            active[starts >= time] = count
        return active

    def pass_to(self, time: float) -> None:
        """Forget activations that have taken effect before that time."""
        for name, (due, count) in list(self._due.items()):
            if due < time:
                self.active[name] = count
                del self._due[name]

    def _check(self, replicas: Mapping[str, int]) -> None:
        for name, count in replicas.items():
            if name not in self._topology.by_name:
                known = ", ".join(self._topology.by_name)
                raise InvalidInputError(
                    f"{self._topology} has no operator {name!r} to scale; it has {known}"
                )
            pool = self._topology.by_name[name].pool
            if not 1 <= count <= pool:
                raise InvalidInputError(
                    f"{count} replicas of {name!r}: its pool allows 1 to {pool}"
                )
