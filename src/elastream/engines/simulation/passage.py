"""How tagged events pass through queues: who leaves when, who stays, who is lost."""

from __future__ import annotations

import numpy as np

from elastream.engines.simulation.curves import FifoCurves, ReplicaCurves
from elastream.engines.simulation.tags import Tags


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
