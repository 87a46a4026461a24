"""The project's own groupings inside the simulation, on a sample of the events of every step.

A step may hold a million events; at most `SAMPLE` of them are drawn, routed by the real grouping
with its real feedback, and stand for all. Above that number the randomness of a step is
overstated by √(events / SAMPLE); its mean is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastream.core.groupings.base import (
    Batch,
    Feedback,
    Grouping,
    ReplicaLoads,
    Routing,
    Utilization,
)
from elastream.core.service_times import ByValue

Floats = NDArray[np.float64]

SAMPLE = 256


class SampledRouter:
    """Draws values, routes them, and tells the grouping what it asks to be told."""

    def __init__(
        self, grouping: Grouping[Any], pool: int, time: ByValue, random: np.random.Generator
    ) -> None:
        self._grouping = grouping
        self._pool = pool
        self._time = time
        self._random = random
        self._state = grouping.start(pool)
        self._events_each = 1.0
        self._sides = [grouping.replica_side(replica) for replica in range(pool)]

    def route(self, events: float, active: int) -> tuple[Floats, Floats]:
        """Events, and seconds of work, that every replica of the pool gets of so many events."""
        count = min(int(np.ceil(events)), SAMPLE)
        values = self._time.values(self._random, count)
        costs = self._time.costs[values]
        routing = self._grouping.route(self._state, Batch.of(values), np.arange(active))
        self._state = routing.state
        self._events_each = events / count
        numbers = np.bincount(routing.replicas, minlength=self._pool)
        work = np.bincount(routing.replicas, costs, self._pool).astype(np.float64)
        self._tell_replicas(routing, values, costs)
        return numbers.astype(np.float64) * self._events_each, work * self._events_each

    def tell_utilization(self, of_replicas: Floats, duration: float) -> None:
        """What `algorithm-1` learns once per interval: one event of the sample adds et/td."""
        each = self._time.mean * self._events_each / duration
        self._learn(Utilization(tuple(of_replicas.tolist()), each))

    def tell_loads(self, loads: ReplicaLoads) -> None:
        """What groupings learn that level backlogs: an event of the sample stands for several."""
        self._learn(loads.in_units(self._events_each))

    def _tell_replicas(
        self, routing: Routing[Any], values: NDArray[np.int64], costs: Floats
    ) -> None:
        for replica in np.unique(routing.replicas).tolist():
            side = self._sides[replica]
            if side is None:
                continue
            mine = np.flatnonzero(routing.replicas == replica)
            requests = [
                replace(request, position=int(np.searchsorted(mine, request.position)))
                for request in routing.requests
                if request.replica == replica
            ]
            self._sides[replica], feedback = side.execute(values[mine], costs[mine], requests)
            for message in feedback:
                self._learn(message)

    def _learn(self, feedback: Feedback) -> None:
        self._state = self._grouping.learn(self._state, feedback)
