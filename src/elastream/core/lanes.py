"""Lanes: which replica owns which of an operator's queues.

An operator has a fixed number of lanes. A lane is a queue with an order, and one replica owns it at
a time. When the set of active replicas changes, lanes change hands, and what waits in them goes
along; nothing else moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.hashing import fingerprints

LANES_PER_REPLICA = 4
"""Enough to balance load finely, and few enough that looking at them costs little."""
TOLERANCE = 0.25
"""A replica may have this much more than its share before a lane moves for balance alone."""

Owners = tuple[int, ...]
"""The replica that owns each lane."""


def lane_count(pool: int, asked: int | None = None) -> int:
    """How many lanes an operator has: as many as asked for, or four for each replica.

    >>> lane_count(8), lane_count(8, asked=10)
    (32, 10)
    """
    return asked if asked is not None else LANES_PER_REPLICA * pool


def lanes_of_keys(keys: ArrayLike, lanes: int) -> NDArray[np.intp]:
    """The lane of every key, which never changes, whatever the plan does.

    >>> lanes_of_keys(["ann", "bob", "ann"], lanes=8).tolist()
    [1, 3, 1]
    """
    return (fingerprints(keys) % np.uint64(lanes)).astype(np.intp)


def lanes_by_owner(owners: Owners) -> dict[int, tuple[int, ...]]:
    """The lanes of every replica that has any.

    >>> lanes_by_owner((0, 0, 2, 0))
    {0: (0, 1, 3), 2: (2,)}
    """
    found: dict[int, list[int]] = {}
    for lane, owner in enumerate(owners):
        found.setdefault(owner, []).append(lane)
    return {owner: tuple(lanes) for owner, lanes in found.items()}


def assign(owners: Owners, active: Sequence[int], weights: Sequence[float]) -> Owners:
    """Give every lane to an active replica, moving as few lanes as possible.

    Lanes whose owner is no longer active go, heaviest first, to the replica that has least. Then
    the one that has most gives lanes to the one that has least, as long as a move brings the two
    closer together. When the replicas are the same as before, it does so only if it is more than a
    quarter above its share. Every active replica has at least one lane if there are enough.

    Args:
        owners: Who owned each lane before; a number that is not active means nobody.
        active: The replicas that are active now.
        weights: What each lane weighs, such as the events that wait in it and that will come.

    >>> assign((0, 0, 0, 0), active=[0, 1], weights=[1, 1, 1, 1])
    (1, 1, 0, 0)
    >>> assign((0, 0, 1, 1), active=[1], weights=[1, 1, 1, 1])
    (1, 1, 1, 1)

    One lane that is as heavy as all others has a replica to itself:

    >>> assign((0, 0, 0, 0), active=[0, 1], weights=[9, 3, 3, 3])
    (1, 0, 0, 0)
    """
    loads = dict.fromkeys(active, 0.0)
    held: dict[int, list[int]] = {replica: [] for replica in active}
    ownerless = []
    for lane, owner in enumerate(owners):
        if owner in loads:
            loads[owner] += weights[lane]
            held[owner].append(lane)
        else:
            ownerless.append(lane)
    for lane in sorted(ownerless, key=lambda lane: (-weights[lane], lane)):
        replica = min(loads, key=lambda r: (loads[r], len(held[r]), r))
        loads[replica] += weights[lane]
        held[replica].append(lane)
    _balance(loads, held, weights, TOLERANCE if set(owners) == set(active) else 0.0)
    placed = {lane: replica for replica, lanes in held.items() for lane in lanes}
    return tuple(placed[lane] for lane in range(len(owners)))


def _balance(
    loads: dict[int, float], held: dict[int, list[int]], weights: Sequence[float], tolerance: float
) -> None:
    share = sum(loads.values()) / len(loads)
    for _ in range(sum(map(len, held.values()))):
        least = min(loads, key=lambda r: (loads[r], len(held[r]), r))
        givers = [r for r in loads if len(held[r]) > 1]
        if not givers:
            return
        most = max(givers, key=lambda r: (loads[r], len(held[r]), -r))
        gap = loads[most] - loads[least]
        if held[least] and (loads[most] <= (1 + tolerance) * share or gap <= 0):
            return
        # The lane that halves the gap best; one that is heavier than the gap would only swap roles.
        lane = min(held[most], key=lambda lane: (abs(gap / 2 - weights[lane]), lane))
        if held[least] and weights[lane] >= gap:
            return
        held[most].remove(lane)
        held[least].append(lane)
        loads[most] -= weights[lane]
        loads[least] += weights[lane]


def lane_weights(
    queued: Mapping[int, float], arriving: Mapping[int, float], lanes: int, keyed: bool
) -> list[float]:
    """The weight of each lane: the events that wait in it, and those to come.

    A key keeps its lane, so what arrived there will arrive there again. Without a key, what
    arrived says only where producers sent it, and what is to come is shared evenly.

    Args:
        queued: Events that wait, by lane.
        arriving: Events that arrived in the last interval, by lane.
        lanes: How many lanes there are.
        keyed: Whether a key chooses the lane.
    """
    even = max(sum(arriving.values()), 1.0) / lanes
    return [
        queued.get(lane, 0.0) + (arriving.get(lane, 0.0) + 1e-6 if keyed else even)
        for lane in range(lanes)
    ]
