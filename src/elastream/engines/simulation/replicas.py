"""Which replicas are active when: plans take effect at once, after a delay, or by a restart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elastream.core.allotment import allotted
from elastream.core.decision import Plan
from elastream.core.topology import Topology
from elastream.engines.simulation.executors import ExecutorSchedule
from elastream.engines.simulation.settings import SimulationSettings
from elastream.errors import InvalidInputError


class ReplicaSchedule:
    """The active replicas of every operator over time."""

    def __init__(self, topology: Topology, settings: SimulationSettings) -> None:
        self._topology = topology
        self._levels = ((0, settings.activation_delay), *settings.levels)
        self._downtime = settings.restart_downtime
        self.down_until = 0.0
        """When the pipeline is back after the last restart."""
        topology.check_replicas(settings.initial)
        self.active = {
            name: settings.initial.get(name, operator.minimum)
            for name, operator in topology.by_name.items()
        }
        self._wanted = dict(self.active)
        self.executors: ExecutorSchedule | None = None
        if settings.executors is not None:
            self.executors = ExecutorSchedule(settings.executors, len(topology.sources))
            minima = sum(of.minimum for of in topology.operators)
            if settings.executors.limits[1] * settings.executors.slots < (
                minima + len(topology.sources)
            ):
                raise InvalidInputError(
                    f"executors={settings.executors.limits} with {settings.executors.slots} task "
                    f"slots each are too few for the sources and minima of {topology}"
                )
        self._due: dict[str, list[tuple[float, int]]] = {}
        """Activations that have not taken effect: when, and how many replicas are active then."""

    def apply(self, plan: Plan, now: float) -> None:
        """Take a plan: deactivation is immediate, activation takes its time."""
        self._topology.check_replicas(plan.replicas)
        self._wanted |= plan.replicas
        if self.executors is not None:
            if plan.executors is not None:
                self.executors.want(plan.executors, now)
            self._share_slots(self.executors, now)
            return
        target = self.active | {name: due[-1][1] for name, due in self._due.items()}
        changes = plan.changes(target)
        if changes and self._downtime is not None:
            self.down_until = now + self._downtime
        for change in changes:
            self._change(change.operator, change.after, now)

    def _share_slots(self, executors: ExecutorSchedule, now: float) -> None:
        """Activate what there are slots for, now and when more executors come."""
        minima = {name: of.minimum for name, of in self._topology.by_name.items()}
        (_, room), *later = executors.rooms
        share = allotted(self._wanted, minima, self.active, room)
        for name, count in share.items():
            self._change(name, count, now)
        delay = self._levels[0][1]
        for time, room in later:
            share = allotted(self._wanted, minima, share, room)
            for name, count in share.items():
                if count > self.active[name]:
                    self._due.setdefault(name, []).append((time + delay, count))

    def _change(self, name: str, after: int, now: float) -> None:
        """Replicas that are on their way stay so, as far as they are still wanted."""
        due = [(time, min(count, after)) for time, count in self._due.pop(name, [])]
        if after < self.active[name]:
            self.active[name] = after
        most = max([self.active[name], *(count for _, count in due)])
        ends = [*(count for count, _ in self._levels[1:]), self._topology.by_name[name].pool]
        for (_, delay), end in zip(self._levels, ends, strict=True):
            if (count := min(after, end)) > most:
                most = count
                due.append((now + delay, count))
                if delay == 0:
                    self.active[name] = count
        waiting = [(time, count) for time, count in sorted(due) if count > self.active[name]]
        if waiting:
            self._due[name] = waiting

    def pending(self, name: str) -> int:
        """How many replicas are on their way."""
        active = self.active[name]
        return max([active, *(count for _, count in self._due.get(name, ()))]) - active

    def breaks(self, start: float, end: float) -> list[float]:
        """The times at which something changes between start and end."""
        times = [time for due in self._due.values() for time, _ in due] + [self.down_until]
        return [time for time in times if start < time < end]

    def profile(self, name: str, starts: NDArray[np.float64]) -> NDArray[np.int64]:
        """Active replicas in the steps that start at these times."""
        active = np.full(len(starts), self.active[name], dtype=np.int64)
        for time, count in self._due.get(name, ()):
            active[starts >= time] = np.maximum(active[starts >= time], count)
        return active

    def pass_to(self, time: float) -> None:
        """Forget activations that have taken effect before that time."""
        if self.executors is not None:
            self.executors.pass_to(time)
        for name, due in list(self._due.items()):
            come = [count for at, count in due if at < time]
            self.active[name] = max([self.active[name], *come])
            self._due[name] = [(at, count) for at, count in due if at >= time]
            if not self._due[name]:
                del self._due[name]
