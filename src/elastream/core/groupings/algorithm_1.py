"""`algorithm-1`: the least utilised replica gets the next event (PA-SPS algorithm 1, as printed).

For one producer that learns what replicas did in the last interval. Several producers herd: each
pours into the same replica until its own copy of the figures says otherwise; `load-aware` does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.groupings.base import (
    Batch,
    Feedback,
    Grouping,
    Indices,
    Routing,
    Utilization,
    checked_active,
    in_turn,
)

_UNKNOWN_STEP = 1e-9
"""What an event adds while its cost is unknown or zero: enough for round robin."""


@dataclass(frozen=True, slots=True)
class Algorithm1State:
    """The last measured utilisation of every replica, and the events sent to each since then."""

    measured: NDArray[np.float64]
    sent: NDArray[np.int64]
    step: float = _UNKNOWN_STEP
    turn: int = 0
    first: int = 0
    """Of equally utilised replicas, this one and those after it come first."""

    @property
    def utilization(self) -> NDArray[np.float64]:
        """U_i,j: measured, plus et_i/td for every event sent since."""
        return self.measured + self.sent * self.step

    def places(self, replicas: Indices) -> Indices:
        """The order of equally utilised replicas: the lowest number goes first."""
        return (replicas - self.first) % len(self.sent)


@dataclass(frozen=True)
class Algorithm1(Grouping[Algorithm1State]):
    """Fills the active replicas from the lowest utilisation up; round robin when all are full.

    A batch gives what algorithm 1 gives event by event. The k-th event that a replica takes finds
    it at the level U + k·et/td, and the algorithm takes the lowest level that is free, so a batch
    of n events takes the n lowest levels below 1, in ascending order.

    >>> grouping = Algorithm1()
    >>> busy = grouping.learn(grouping.start(3), Utilization((0.875, 0.5, 0.75), per_event=0.125))
    >>> grouping.route(busy, Batch(6), active=[0, 1, 2]).replicas
    array([1, 1, 1, 2, 0, 1])
    """

    name = "algorithm-1"
    listens_to = frozenset({Utilization})

    def start(self, pool: int, producer: int = 0) -> Algorithm1State:
        """Nothing was measured: every replica counts as idle."""
        sent = np.zeros(pool, dtype=np.int64)
        return Algorithm1State(np.zeros(pool), sent, turn=producer, first=producer)

    def learn(self, state: Algorithm1State, feedback: Feedback) -> Algorithm1State:
        """Start again from a new measurement."""
        if not isinstance(feedback, Utilization):
            return state
        measured = np.clip(np.asarray(feedback.of_replicas, dtype=np.float64), 0.0, 1.0)
        step = max(feedback.per_event, _UNKNOWN_STEP)
        return replace(state, measured=measured, sent=np.zeros_like(state.sent), step=step)

    def route(
        self, state: Algorithm1State, batch: Batch, active: ArrayLike
    ) -> Routing[Algorithm1State]:
        """Take the lowest levels, then round robin for the rest of the batch."""
        replicas = checked_active(active)
        one = batch.count == 1
        filled = _lowest(state, replicas) if one else _lowest_levels(state, replicas, batch.count)
        sent = state.sent + np.bincount(filled, minlength=len(state.sent))
        left = batch.count - len(filled)
        chosen = np.concatenate([filled, in_turn(replicas, state.turn, left)])
        turn = (state.turn + left) % len(replicas)
        return Routing(chosen, replace(state, sent=sent, turn=turn))


def _lowest(state: Algorithm1State, active: Indices) -> Indices:
    """The replica of the lowest level, if that is below 1: all that a single event needs."""
    levels = state.utilization[active]
    lowest = levels.min()
    alike = active[levels == lowest]
    return alike[[state.places(alike).argmin()]] if lowest < 1 else active[:0]


def _lowest_levels(state: Algorithm1State, active: Indices, count: int) -> Indices:
    """The replicas of the `count` lowest levels below 1, in ascending order."""
    levels = state.utilization[active]
    depth = np.maximum((_water_level(levels, count * state.step) - levels) / state.step, 0.0)
    slots = np.where(levels < 1, np.minimum(depth.astype(np.int64) + 2, count), 0)
    owner = np.repeat(np.arange(len(active)), slots)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(slots) - slots, slots)
    replica = active[owner]
    level = state.measured[replica] + (state.sent[replica] + within) * state.step
    free = level < 1
    order = np.lexsort((state.places(replica[free]), level[free]))[:count]
    lowest: Indices = replica[free][order]
    return lowest


def _water_level(levels: NDArray[np.float64], volume: float) -> float:
    """How high `volume` stands when it is poured over these levels, and 1 at most.

    Poured over the k lowest alone it stands at their mean plus volume/k, which is least when they
    are just those that it covers.
    """
    heights = (volume + np.cumsum(np.sort(levels))) / np.arange(1, len(levels) + 1)
    return min(float(heights.min()), 1.0)
