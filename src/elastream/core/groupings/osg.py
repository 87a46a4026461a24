"""`osg`: events go where there is the least estimated work (after DABS-Storm section 5).

What a value costs on a replica is estimated as in the paper, by two Count-Min sketches that the
replica makes (`osg_replica`). What differs is which work is compared. The paper's scheduler
compares the *cumulated* execution times of replicas, and asks them for theirs from time to time
(`osg-published`). A replica that has done less since the start then gets all events until it has
caught up, whether it is idle or not; with several schedulers, each one catches up for all of them;
and while queues are long, the next question overtakes the answers, so none ever counts. Here each
producer levels the work that it sends itself, and its part of what waits now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.groupings.base import (
    Batch,
    Feedback,
    Grouping,
    Indices,
    ReplicaLoads,
    Routing,
    SketchReport,
    checked_active,
    checked_keys,
)
from elastream.core.groupings.osg_replica import OsgReplica, sketched_costs
from elastream.core.groupings.shares import backlog
from elastream.core.sketches import HashFamily

Floats = NDArray[np.float64]

_UNKNOWN = 1e-9
"""What an event costs while nothing is known: enough for round robin, too little to matter."""


@dataclass(frozen=True)
class OsgState:
    """What one producer knows. Arrays have one entry per replica of the pool."""

    frequency: Floats
    """Φ, flattened: how often a replica saw the values of a cell."""
    time: Floats
    """Ω, flattened: what the values of a cell cost it, in seconds."""
    seconds: Floats
    """Mean execution time per event; 0 where nothing was measured."""
    work: Floats
    """Estimated seconds of work that this producer has given each beyond the others."""
    first: int = 0
    """Of replicas with equal work, this one and those after it come first."""
    largest: float = 0.0
    """The highest estimated cost of an event of this producer, in seconds."""
    routed: int = 0
    """Events that this producer has sent since the last report of loads."""
    members: tuple[int, ...] = ()

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which replicas have reported their sketches."""
        return np.asarray(self.frequency.any(axis=1))


@dataclass(frozen=True)
class Osg(Grouping[OsgState]):
    """Gives every event to the replica with the least estimated work (greedy online scheduler).

    A value costs Ω/Φ at its least used cell, where it shares least; a value never seen costs the
    replica's mean. A replica that has not reported costs what all others cost together, as sketches
    of one family can be added. While nothing is known, all events cost the same everywhere, and the
    greedy scheduler goes round.

    When loads are reported, the producer adds to the work of each replica its own part of what
    waits there: the part that it sent of all events since the last report. A `horizon` longer than
    a report can be old spreads the correction over several reports.
    """

    epsilon: float = 0.05
    delta: float = 0.05
    seed: int = 0
    horizon: float = 2.0

    name = "osg"
    needs_key = True
    listens_to = frozenset({ReplicaLoads, SketchReport})

    @cached_property
    def family(self) -> HashFamily:
        """The hash functions that producers and replicas share."""
        return HashFamily.sized(self.epsilon, self.delta, self.seed)

    def replica_side(self, replica: int) -> OsgReplica:
        """The sketches of that replica."""
        return OsgReplica.start(replica, self.family)

    def start(self, pool: int, producer: int = 0) -> OsgState:
        """No replica has reported yet."""
        table = np.zeros((pool, self.family.rows * self.family.columns))
        return OsgState(table, table.copy(), np.zeros(pool), np.zeros(pool), first=producer)

    def learn(self, state: OsgState, feedback: Feedback) -> OsgState:
        """Take in a replica's sketches, or what waits for all of them."""
        if isinstance(feedback, SketchReport):
            frequency, time = state.frequency.copy(), state.time.copy()
            frequency[feedback.replica] = feedback.frequency.ravel()
            time[feedback.replica] = feedback.time.ravel()
            return replace(state, frequency=frequency, time=time)
        if isinstance(feedback, ReplicaLoads):
            return self._with_loads(state, feedback)
        return state

    def route(self, state: OsgState, batch: Batch, active: ArrayLike) -> Routing[OsgState]:
        """Each event to the replica with the least work."""
        keys = checked_keys(batch, self.name)
        replicas = checked_active(active)
        state = _with_members(state, replicas)
        costs = self._costs(state, keys, replicas)
        places = ((replicas - state.first) % len(state.work)).tolist()
        levels = state.work[replicas].tolist()
        heap = list(zip(levels, places, range(len(replicas)), strict=True))
        heapify(heap)
        chosen = []
        for cost in costs.T.tolist():
            level, place, row = heap[0]
            heapreplace(heap, (level + cost[row], place, row))
            chosen.append(row)
        work = state.work.copy()
        for level, _, row in heap:
            work[replicas[row]] = level
        largest = max(state.largest, float(costs.max(initial=0.0)))
        state = replace(state, work=work, largest=largest, routed=state.routed + batch.count)
        return Routing(replicas[np.asarray(chosen, dtype=np.intp)], state)

    def _with_loads(self, state: OsgState, loads: ReplicaLoads) -> OsgState:
        measured = np.asarray(loads.per_event, dtype=np.float64)
        seconds = np.where(measured > 0, measured, state.seconds)
        work = state.work
        came = loads.arriving * loads.period
        if state.members and came > 0:
            members = np.array(state.members, dtype=np.intp)
            part = min(state.routed / came, 1.0)
            pace = min(loads.period / self.horizon, 1.0)
            behind = part * pace * backlog(loads, members, seconds[members])
            # Greedy choices are uneven by one event at most; anything more is an older correction.
            ahead = np.minimum(work[members] - work[members].min(), state.largest)
            work = work.copy()
            work[members] = ahead + behind
        return replace(state, seconds=seconds, work=work, routed=0)

    def _costs(self, state: OsgState, keys: ArrayLike, active: Indices) -> Floats:
        """ŵ: what each event would cost on each active replica, in seconds: (replicas, events)."""
        known = state.known[active]
        if not state.known.any():
            seconds = state.seconds[active]
            typical = seconds[seconds > 0].mean() if seconds.any() else _UNKNOWN
            each = np.where(seconds > 0, seconds, typical)
            return np.repeat(each[:, np.newaxis], len(np.asarray(keys)), axis=1)
        return sketched_costs(self.family, state.frequency, state.time, known, active, keys)


def _with_members(state: OsgState, active: Indices) -> OsgState:
    """The state for these active replicas; one that joins starts level with the least loaded."""
    members = tuple(active.tolist())
    if members == state.members:
        return state
    work = state.work - state.work[active].min()
    stayed = [replica for replica in members if replica in state.members]
    joined = [replica for replica in members if replica not in state.members]
    work[joined] = work[stayed].min() if stayed else 0.0
    return replace(state, members=members, work=work)
