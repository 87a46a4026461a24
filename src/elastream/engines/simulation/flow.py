"""Events as a fluid that runs down the DAG, step by step.

In every step each operator, in the order of the DAG, takes what its predecessors put out in the
same step: a step is far longer than an execution time, which is added to the latencies.

As long as no bound is reached, a queue's length follows from its input alone: all steps are done
at once (`_run_free`). Only stretches in which something binds are simulated step by step.

When full queues block, a first pass from the ends of the DAG backwards finds how much each node
may put out. A queue has room for what its bound leaves free and for what it will process in this
step. It divides that room among its predecessors in proportion to what they could send.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elastream.core.behaviour import Behaviour
from elastream.core.stats import EdgeName
from elastream.core.topology import Topology
from elastream.engines.simulation.queue import Queue

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gains:
    """What one processed event of an origin sends down each of its edges."""

    targets: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, topology: Topology, behaviour: Behaviour) -> Gains:
        """Selectivity times the share of each edge."""
        found: dict[str, dict[str, float]] = {}
        for name, edges in topology.outgoing.items():
            alpha = behaviour.of(topology, name).selectivity if name in topology.by_name else 1.0
            found[name] = {edge.target: alpha * behaviour.share(edge) for edge in edges}
        return cls(found)


class Flow:
    """Runs the fluid through all queues, and tracks what the sources hold back."""

    def __init__(
        self, topology: Topology, gains: Gains, queues: Mapping[str, Queue], blocking: bool
    ) -> None:
        self._blocking = blocking
        order = [name for name in topology.order if name in queues]
        index = {name: number for number, name in enumerate(order)}
        self._queues = [queues[name] for name in order]
        self._sources = [source.name for source in topology.sources]
        self._edges: list[EdgeName] = []
        self._from_sources = [self._links(name, gains, index) for name in self._sources]
        self._links_of = [self._links(name, gains, index) for name in order]
        self._carried = [0.0] * len(self._edges)
        self.held = dict.fromkeys(self._sources, 0.0)
        """Events that each source holds back because the pipeline is full."""

    def run(self, steps: int, arrivals: Mapping[str, Floats]) -> Mapping[str, Sequence[float]]:
        """Let the arrivals of all steps in; returns what each source holds back after each."""
        if self._run_free(steps, arrivals):
            return dict.fromkeys(self._sources, [0.0] * steps)
        return self._run_stepwise(steps, arrivals)

    def _run_free(self, steps: int, arrivals: Mapping[str, Floats]) -> bool:
        """All steps at once, operator by operator; False when some queue needs single steps."""
        if any(self.held.values()):
            return False
        inflow = [np.zeros(steps) for _ in self._queues]
        carried = list(self._carried)

        def send(events: Floats, links: list[tuple[int, float, int]]) -> None:
            for target, gain, edge in links:
                inflow[target] += events * gain
                carried[edge] += float(events.sum()) * gain

        for name, links in zip(self._sources, self._from_sources, strict=True):
            send(arrivals[name], links)
        for number, queue in enumerate(self._queues):
            served = queue.free(inflow[number])
            if served is None:
                return False
            send(served, self._links_of[number])
        for queue in self._queues:
            queue.commit()
        self._carried = carried
        return True

    def _run_stepwise(
        self, steps: int, arrivals: Mapping[str, Floats]
    ) -> Mapping[str, Sequence[float]]:
        held = [self.held[name] for name in self._sources]
        log: dict[str, list[float]] = {name: [] for name in self._sources}
        coming: list[list[float]] = [arrivals[name].tolist() for name in self._sources]
        limits: list[list[float]] = [queue.capacity.tolist() for queue in self._queues]
        for queue in self._queues:
            queue.begin_steps()
        for step in range(steps):
            ready = [kept + new[step] for kept, new in zip(held, coming, strict=True)]
            limit = [capacity[step] for capacity in limits]
            sent = self._admit(step, ready, limit) if self._blocking else ready
            inflow = [0.0] * len(self._queues)
            for events, links in zip(sent, self._from_sources, strict=True):
                self._send(events, links, inflow)
            for number, queue in enumerate(self._queues):
                served = queue.step(step, inflow[number], limit[number])
                if served:
                    self._send(served, self._links_of[number], inflow)
            held = [have - gone for have, gone in zip(ready, sent, strict=True)]
            for name, kept in zip(self._sources, held, strict=True):
                log[name].append(kept)
        self.held = dict(zip(self._sources, held, strict=True))
        return log

    def collect_edges(self) -> dict[EdgeName, float]:
        """What travelled every edge since the last call."""
        carried = dict(zip(self._edges, self._carried, strict=True))
        self._carried = [0.0] * len(self._edges)
        return carried

    def _admit(self, step: int, ready: list[float], limit: list[float]) -> list[float]:
        """Lower every limit to what there is room for; returns what sources may send."""
        demand = [0.0] * len(self._queues)
        for events, links in zip(ready, self._from_sources, strict=True):
            for target, gain, _ in links:
                demand[target] += gain * events
        for capacity, links in zip(limit, self._links_of, strict=True):
            for target, gain, _ in links:
                demand[target] += gain * capacity
        ease = [1.0] * len(self._queues)
        for number in range(len(self._queues) - 1, -1, -1):
            limit[number] *= _least(self._links_of[number], ease)
            room = self._queues[number].room(step, limit[number])
            if room < demand[number]:
                ease[number] = room / demand[number]
        return [
            events * _least(links, ease)
            for events, links in zip(ready, self._from_sources, strict=True)
        ]

    def _send(
        self, events: float, links: list[tuple[int, float, int]], inflow: list[float]
    ) -> None:
        for target, gain, edge in links:
            moved = events * gain
            inflow[target] += moved
            self._carried[edge] += moved

    def _links(
        self, origin: str, gains: Gains, index: Mapping[str, int]
    ) -> list[tuple[int, float, int]]:
        """Target, gain and number of every edge of a node."""
        links = []
        for target, gain in gains.targets[origin].items():
            links.append((index[target], gain, len(self._edges)))
            self._edges.append((origin, target))
        return links


def _least(links: list[tuple[int, float, int]], ease: list[float]) -> float:
    """The part of a node's output that all its targets can take."""
    least = math.inf
    for target, gain, _ in links:
        if gain > 0 and ease[target] < least:
            least = ease[target]
    return min(least, 1.0)
