"""`load-aware`: each replica gets what it can take, and less if it is behind (after PA-SPS 3.1).

Algorithm 1 of PA-SPS sends the next event to the replica that was least utilised. With one producer
that is exact. Several producers, each with the same figures of the last interval, all pour into the
same replica (`algorithm-1`: the printed one). Here a producer does not choose the best replica; it
works out which *share* of all events each replica should get, and sends that share of its own
events. The shares of all producers add up to the right total, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.groupings.base import (
    Batch,
    Feedback,
    Grouping,
    Indices,
    ReplicaLoads,
    Routing,
    checked_active,
)
from elastream.core.groupings.shares import (
    backlog,
    in_shares,
    least_delay,
    level_after,
    one_in_shares,
)

Floats = NDArray[np.float64]

_SMOOTHING = 0.3
"""The weight of a new measurement of an execution time, against all before it."""
_ALIKE = 0.15
"""Execution times within this share of the median count as equal: it may be chance."""


class Shares(NamedTuple):
    """The share of the events that each active replica should get."""

    active: tuple[int, ...]
    steady: Floats
    """When there is no backlog to correct."""
    corrected: Floats
    """While backlogs are being corrected."""

    def now(self, state: LoadAwareState) -> Floats:
        """Those that hold for the next event."""
        return self.corrected if state.correction > 0 else self.steady


@dataclass(frozen=True)
class LoadAwareState:
    """What one producer knows. Arrays have one entry per replica of the pool."""

    seconds: Floats
    """Execution time per event, smoothed; 0 where nothing was measured."""
    credit: Floats
    """What each replica is owed by this producer, in events."""
    first: int = 0
    """Of replicas that are owed the same, this one and those after it come first."""
    loads: ReplicaLoads | None = None
    routed: int = 0
    """Events that this producer has sent since the last report."""
    correction: int = 0
    """For how many more events the backlogs of that report are corrected."""
    shares: Shares | None = None
    """From that report; None when they must be computed again."""


@dataclass(frozen=True)
class LoadAware(Grouping[LoadAwareState]):
    """Shares by speed, less what a replica is behind, made up for over a `horizon`.

    Until a first report comes, and as long as all replicas are alike, it is round robin.

    - By speed: the split of the arriving events over replicas of these speeds that has the least
      mean delay (`least_delay`). All are utilised alike when load is high; when it is low, the slow
      ones are spared.
    - What a replica is behind is the work that waits for it, less what it works off before the
      report is of use. Within the horizon all are to be level again. The horizon is twice as long
      as a report may be old: a producer that hurried would correct what others, or it itself, have
      corrected already.
    - The correction ends with the events for which it was meant, so that a report that stays the
      last one does no harm.

    >>> grouping = LoadAware()
    >>> slow = ReplicaLoads((0, 0, 0), (0.001, 0.001, 0.003), (0.9,) * 3, arriving=2200, period=1)
    >>> state = grouping.learn(grouping.start(3), slow)
    >>> np.bincount(grouping.route(state, Batch(1000), [0, 1, 2]).replicas)
    array([431, 431, 138])
    """

    horizon: float = 2.0

    name = "load-aware"
    listens_to = frozenset({ReplicaLoads})

    def start(self, pool: int, producer: int = 0) -> LoadAwareState:
        """Nothing was measured: all replicas count as equal."""
        return LoadAwareState(np.zeros(pool), np.zeros(pool), first=producer)

    def learn(self, state: LoadAwareState, feedback: Feedback) -> LoadAwareState:
        """Take in a report; the shares follow from it when the next batch comes."""
        if not isinstance(feedback, ReplicaLoads):
            return state
        measured = np.asarray(feedback.per_event, dtype=np.float64)
        old = np.where(state.seconds > 0, state.seconds, measured)
        mixed = old + _SMOOTHING * (measured - old)
        # This producer's part of a horizon's events, if it continues as since the last report.
        correction = round(state.routed * self.horizon / feedback.period)
        return replace(
            state,
            seconds=np.where(measured > 0, mixed, old),
            loads=feedback,
            routed=0,
            correction=correction,
            shares=None,
        )

    def route(
        self, state: LoadAwareState, batch: Batch, active: ArrayLike
    ) -> Routing[LoadAwareState]:
        """Distribute the batch by shares."""
        replicas = checked_active(active)
        state, shares = self._shared(state, tuple(replicas.tolist()))
        places = (replicas - state.first) % len(state.credit)
        credit = state.credit.copy()
        owed = credit[replicas]
        chosen, credit[replicas] = in_shares(shares.now(state), owed, places, batch.count)
        return Routing(replicas[chosen], _after(state, credit, batch.count))

    def route_one(self, state: LoadAwareState, active: Sequence[int]) -> tuple[int, LoadAwareState]:
        """The same for one event, without arrays."""
        state, shares = self._shared(state, tuple(active))
        credit: list[float] = state.credit.tolist()
        chosen, owed = one_in_shares(
            shares.now(state).tolist(),
            [credit[replica] for replica in active],
            [(replica - state.first) % len(credit) for replica in active],
        )
        for replica, due in zip(active, owed, strict=True):
            credit[replica] = due
        return active[chosen], _after(state, np.array(credit), 1)

    def _shared(
        self, state: LoadAwareState, active: tuple[int, ...]
    ) -> tuple[LoadAwareState, Shares]:
        """The shares of these replicas; new ones are owed nothing."""
        if state.shares and state.shares.active == active:
            return state, state.shares
        replicas = checked_active(active)
        credit = np.zeros_like(state.credit)
        credit[replicas] = state.credit[replicas]
        shares = Shares(active, *self._by_loads(state, replicas))
        return replace(state, credit=credit, shares=shares), shares

    def _by_loads(self, state: LoadAwareState, replicas: Indices) -> tuple[Floats, Floats]:
        """Steady and corrected shares, by the last report."""
        seconds, loads = state.seconds[replicas], state.loads
        if loads is None or not seconds.any():
            equal = np.full(len(replicas), 1 / len(replicas))
            return equal, equal
        # A replica without measurements counts as fast as the others.
        typical = float(np.median(seconds[seconds > 0]))
        differs = (seconds > 0) & (np.abs(seconds - typical) > _ALIKE * typical)
        seconds = np.where(differs, seconds, typical)
        steady = least_delay(1 / seconds, loads.arriving)
        events = loads.arriving * self.horizon
        if events < 1:
            return steady, steady
        behind = backlog(loads, replicas, seconds)
        given = level_after(behind - steady * events * seconds, 1 / seconds, events)
        return steady, given / events


def _after(state: LoadAwareState, credit: Floats, events: int) -> LoadAwareState:
    """What a producer knows once it has sent more events."""
    left = max(state.correction - events, 0)
    routed = state.routed + events
    # `dataclasses.replace` takes twice as long, and this is done for every unit.
    return LoadAwareState(
        state.seconds, credit, state.first, state.loads, routed, left, state.shares
    )
