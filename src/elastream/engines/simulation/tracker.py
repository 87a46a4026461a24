"""End-to-end latencies, by a few events that are followed through the fluid.

In every step a few events of each source are tagged, spread at random over the step; each stands
for its part of the events that arrived with it. A tag waits at every operator as the fluid around
it does, takes an execution time drawn from the operator's distribution, and where the DAG branches
follows one edge, drawn by the shares, with the weight of all. So the tags that reach the end are a
sample of the latencies of all events, mixed over all paths as these are, and their number does
not grow with the number of events. Time that an event is held back at its source counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from elastream.core.behaviour import Behaviour
from elastream.core.topology import Topology
from elastream.engines.simulation.curves import FifoCurves, Grid, ReplicaCurves
from elastream.engines.simulation.flow import Gains
from elastream.engines.simulation.passage import through_fifo, through_replicas
from elastream.engines.simulation.settings import SimulationSettings
from elastream.engines.simulation.tags import NONE, Tags, divided, thinned

Floats = NDArray[np.float64]

TAGS_PER_STEP = 2


class TagTracker:
    """Moves tags through the pipeline, and hands out those that reach its end."""

    def __init__(
        self,
        topology: Topology,
        behaviour: Behaviour,
        gains: Gains,
        settings: SimulationSettings,
        random: np.random.Generator,
    ) -> None:
        self._hop, self._overhead = settings.hop_delay, settings.unit_overhead
        self._order = topology.order
        self._times = {name: behaviour.of(topology, name).time for name in topology.by_name}
        self._units = {name: settings.unit(time.mean) for name, time in self._times.items()}
        self._targets = {
            name: (tuple(targets), np.cumsum(list(targets.values())))
            for name, targets in gains.targets.items()
        }
        self._random = random
        self._at: dict[str, list[Tags]] = {name: [] for name in topology.order}
        self._ended: list[Tags] = []

    def follow(
        self, grid: Grid, curves: Mapping[str, FifoCurves | ReplicaCurves]
    ) -> tuple[Floats, Floats]:
        """Move all tags to the end of the grid; returns the latencies and weights of those done."""
        end = float(grid.times[-1])
        for name in self._order:
            tags = Tags.together(self._at[name])
            curve = curves[name]
            if name not in self._times:
                assert isinstance(curve, FifoCurves)
                tags = Tags.together([tags, self._tagged(grid, curve)])
            tags, later = divided(tags, tags.time <= end)
            leaving, staying = self._pass(tags, curve)
            staying = thinned(staying, self._random)
            self._at[name] = [part for part in (staying, later) if len(part.born)]
            if len(leaving.born):
                self._send_on(name, leaving)
        ended = Tags.together(self._ended)
        ready, later = divided(ended, ended.time <= end)
        self._ended = [later]
        return ready.time - ready.born, ready.weight

    def _tagged(self, grid: Grid, arriving: FifoCurves) -> Tags:
        """New tags, a few for every step in which something arrived."""
        arrived = arriving.came[1:] - arriving.came[:-1]
        filled = np.flatnonzero(arrived > 0)
        steps = np.repeat(filled, TAGS_PER_STEP)
        strata = np.tile(np.arange(TAGS_PER_STEP), len(filled)) + self._random.random(len(steps))
        born = grid.starts[steps] + grid.lengths[steps] * strata / TAGS_PER_STEP
        return Tags.new(born, born, arrived[steps] / TAGS_PER_STEP)

    def _pass(self, tags: Tags, curve: FifoCurves | ReplicaCurves) -> tuple[Tags, Tags]:
        if not len(tags.born):
            return NONE, NONE
        if isinstance(curve, ReplicaCurves):
            return through_replicas(tags, curve, self._random)
        return (tags, NONE) if curve.idle else through_fifo(tags, curve)

    def _send_on(self, name: str, tags: Tags) -> None:
        """To a replica, and after its execution time down one edge, or out of the pipeline."""
        time = tags.time
        if name in self._times:
            service = self._times[name]
            others = (self._units[name] - 1) * service.mean + self._overhead
            time = time + service.draw(self._random, len(time)) + others
        targets, gain = self._targets[name]
        if not targets:
            self._ended.append(Tags.new(tags.born, time, tags.weight))
        elif gain[-1] > 0:
            moved = Tags.new(tags.born, time + self._hop, tags.weight * gain[-1])
            self._spread(moved, targets, gain)

    def _spread(self, tags: Tags, targets: tuple[str, ...], gain: Floats) -> None:
        """Each to one of the targets, drawn by what these get."""
        if len(targets) == 1:
            self._at[targets[0]].append(tags)
            return
        draws = self._random.random(len(tags.born)) * gain[-1]
        chosen = np.searchsorted(gain, draws, side="right")
        for number, target in enumerate(targets):
            part = tags.where(chosen == number)
            if len(part.born):
                self._at[target].append(part)
