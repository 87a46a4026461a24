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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elastream.core.behaviour import Behaviour
from elastream.core.topology import Topology
from elastream.engines.simulation.curves import FifoCurves, Grid, ReplicaCurves
from elastream.engines.simulation.flow import Gains

Floats = NDArray[np.float64]

TAGS_PER_STEP = 2
MOST_TAGS = 4096
"""How many tags may wait at one place; in a longer queue each stands for more events."""


@dataclass(frozen=True, slots=True)
class Tags:
    """Tagged events that are at the same place."""

    born: Floats
    """When they arrived at their source."""
    time: Floats
    """When they came here; for those that leave, when they leave."""
    weight: Floats
    """How many events each stands for."""
    place: Floats
    """Their number in the queue; for one of several queues, when their turn comes; else NaN."""

    @classmethod
    def new(cls, born: Floats, time: Floats, weight: Floats) -> Tags:
        """Tags that have no place yet."""
        return cls(born, time, weight, np.full(len(born), np.nan))

    @classmethod
    def together(cls, parts: list[Tags]) -> Tags:
        """All of them, in this order."""
        if len(parts) < 2:
            return parts[0] if parts else NONE
        fields = ("born", "time", "weight", "place")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))

    def where(self, chosen: NDArray[np.bool_]) -> Tags:
        """Some of them."""
        return Tags(self.born[chosen], self.time[chosen], self.weight[chosen], self.place[chosen])


NONE = Tags(*(np.empty(0) for _ in range(4)))


class TagTracker:
    """Moves tags through the pipeline, and hands out those that reach its end."""

    def __init__(
        self, topology: Topology, behaviour: Behaviour, gains: Gains, random: np.random.Generator
    ) -> None:
        self._order = topology.order
        self._times = {name: behaviour.of(topology, name).time for name in topology.by_name}
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
            tags, later = _divided(tags, tags.time <= end)
            leaving, staying = self._pass(tags, curve)
            staying = _thinned(staying, self._random)
            self._at[name] = [part for part in (staying, later) if len(part.born)]
            if len(leaving.born):
                self._send_on(name, leaving)
        ended = Tags.together(self._ended)
        ready, later = _divided(ended, ended.time <= end)
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
            time = time + self._times[name].draw(self._random, len(time))
        targets, gain = self._targets[name]
        if not targets:
            self._ended.append(Tags.new(tags.born, time, tags.weight))
        elif gain[-1] > 0:
            moved = Tags.new(tags.born, time, tags.weight * gain[-1])
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


def _divided(tags: Tags, chosen: NDArray[np.bool_]) -> tuple[Tags, Tags]:
    """Those that are chosen, and the others."""
    return (tags, NONE) if chosen.all() else (tags.where(chosen), tags.where(~chosen))


def _thinned(tags: Tags, random: np.random.Generator) -> Tags:
    """At most `MOST_TAGS`: of every two neighbours one, drawn at random, stands for both."""
    if len(tags.born) <= MOST_TAGS:
        return tags
    pairs = len(tags.born) // 2
    first = 2 * np.arange(pairs)
    kept = first + random.integers(0, 2, pairs)
    weight = tags.weight[first] + tags.weight[first + 1]
    half = Tags(tags.born[kept], tags.time[kept], weight, tags.place[kept])
    odd = np.arange(len(tags.born)) >= 2 * pairs
    return Tags.together([half, tags.where(odd)])


def through_fifo(tags: Tags, curve: FifoCurves) -> tuple[Tags, Tags]:
    """Those that leave the queue, with the time when they do, and those that stay in it."""
    fresh = np.isnan(tags.place)
    place = np.where(fresh, np.interp(tags.time, curve.times, curve.came), tags.place)
    weight = tags.weight
    if curve.refused is not None:
        step = np.maximum(np.searchsorted(curve.times, tags.time, side="left") - 1, 0)
        weight = np.where(fresh, weight * (1 - curve.refused[step]), weight)
    last = len(curve.times) - 2
    leave = np.clip(np.searchsorted(curve.gone, place, side="left") - 1, 0, last)
    lost = 0.0 if curve.lost is None else curve.lost[leave]
    head, start = curve.gone[leave] + lost, curve.times[leave]
    flow = curve.gone[leave + 1] - head
    part = np.divide(place - head, flow, out=np.zeros(len(flow)), where=flow > 0)
    part = np.minimum(np.maximum(part, 0.0), 1.0)
    time = np.maximum(start + (curve.times[leave + 1] - start) * part, tags.time)
    gone = place <= curve.gone[-1]
    alive = weight > 0
    if curve.lost is not None:
        alive &= ~(gone & (lost > 0) & (place <= head) & (place > curve.gone[0]))
    leaving = Tags(tags.born, time, weight, place).where(gone & alive)
    return leaving, Tags(tags.born, tags.time, weight, place).where(~gone & alive)


def through_replicas(
    tags: Tags, curve: ReplicaCurves, random: np.random.Generator
) -> tuple[Tags, Tags]:
    """The same for one queue per replica: a fresh tag draws its replica, and so its wait."""
    fresh = np.isnan(tags.place)
    step = np.clip(np.searchsorted(curve.times, tags.time, side="left") - 1, 0, None)
    routed = np.cumsum(curve.routed[step], axis=1)
    draw = random.random(len(step)) * routed[:, -1]
    replica = np.minimum((routed <= draw[:, np.newaxis]).sum(axis=1), routed.shape[1] - 1)
    start, after = curve.times[step], curve.times[step + 1]
    part = np.clip((tags.time - start) / (after - start), 0, 1)
    work = curve.work[step, replica] * (1 - part) + curve.work[step + 1, replica] * part
    turn = np.where(fresh, tags.time + work, tags.place)
    weight = np.where(fresh, tags.weight * curve.admitted[step, replica], tags.weight)
    # Whoever still waits when a restart begins is lost with the queues.
    restarts = curve.times[:-1][curve.lost]
    first = np.searchsorted(restarts, tags.time, side="left")
    next_restart = np.append(restarts, np.inf)[first]
    alive = (weight > 0) & (turn <= next_restart)
    gone = turn <= curve.times[-1]
    leaving = Tags(tags.born, turn, weight, turn).where(gone & alive)
    return leaving, Tags(tags.born, tags.time, weight, turn).where(~gone & alive)
