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
    SyncReply,
    Utilization,
)
from elastream.core.service_times import ByValue, ServiceTime

Floats = NDArray[np.float64]

SAMPLE = 256
VALUES = 1024
"""How many different keys there are where costs do not depend on them."""


class SampledRouter:
    """Draws events, lets producers route them, and tells these what they ask to be told."""

    def __init__(
        self, grouping: Grouping[Any], pool: int, time: ServiceTime, random: np.random.Generator
    ) -> None:
        self._grouping = grouping
        self._pool = pool
        self._time = time
        self._random = random
        self._states: list[Any] = []
        self._sends = 0
        """Whose turn it is when there are fewer events than producers."""
        self._events_each = 1.0
        self._sides = [grouping.replica_side(replica) for replica in range(pool)]
        self._replicas_answer = any(side is not None for side in self._sides)

    def route(self, events: float, active: int, producers: int) -> tuple[Floats, Floats]:
        """Events, and seconds of work, that every replica of the pool gets of this many events."""
        count = min(int(np.ceil(events)), SAMPLE)
        self._states += [
            self._grouping.start(self._pool, number)
            for number in range(len(self._states), producers)
        ]
        self._events_each = events / count
        values, costs = self._drawn(count)
        numbers, work = np.zeros(self._pool), np.zeros(self._pool)
        for part in np.array_split(np.arange(count), min(producers, count)):
            sender = self._sends % producers
            self._sends += 1
            batch = Batch(len(part), values[part])
            routing = self._grouping.route(self._states[sender], batch, np.arange(active))
            self._states[sender] = routing.state
            numbers += np.bincount(routing.replicas, minlength=self._pool)
            work += np.bincount(routing.replicas, costs[part], self._pool)
            if self._replicas_answer:
                self._tell_replicas(sender, routing, values[part], costs[part])
        return numbers * self._events_each, work * self._events_each

    def _drawn(self, count: int) -> tuple[NDArray[np.int64], Floats]:
        """The values of this many events, and what each takes."""
        if isinstance(self._time, ByValue):
            values = self._time.values(self._random, count)
            return values, self._time.costs[values]
        values = self._random.integers(VALUES, size=count)
        return values, self._time.draw(self._random, count)

    def tell_utilization(self, of_replicas: Floats, duration: float) -> None:
        """What `algorithm-1` learns once per interval: one event of the sample adds et/td."""
        each = self._time.mean * self._events_each / duration
        self._learn(Utilization(tuple(of_replicas.tolist()), each))

    def learn_loads(self, loads: ReplicaLoads) -> None:
        """What groupings learn that level backlogs: an event of the sample stands for several."""
        self._learn(loads.in_units(self._events_each))

    def _tell_replicas(
        self, sender: int, routing: Routing[Any], values: NDArray[np.int64], costs: Floats
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
                if isinstance(message, SyncReply):
                    state = self._states[sender]
                    self._states[sender] = self._grouping.learn(state, message)
                else:
                    self._learn(message)

    def _learn(self, feedback: Feedback) -> None:
        self._states = [self._grouping.learn(state, feedback) for state in self._states]
