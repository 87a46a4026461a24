"""Dividing a stream of events among replicas: how large the shares are, and how to deal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elastream.core.groupings.base import Indices, ReplicaLoads

Floats = NDArray[np.float64]

PROBE = 0.02
"""The least that a replica gets, as a part of an equal share, so that its speed stays known."""
_DIGITS, _TIES = 9, 6
"""Decimals to which credits are kept, and to which events are due together."""


def least_delay(speeds: Floats, arriving: float) -> Floats:
    """The shares with the least mean delay over replicas of these speeds.

    With λ_j of the arriving events a second at a replica that can do μ_j, events take
    1/(μ_j - λ_j) on average (M/M/1). The mean over all events is least where
    λ_j = μ_j - c·√μ_j, with the same c for all replicas that get any; those with √μ_j <= c get
    none. At full load c = 0: all are utilised alike.

    >>> least_delay(np.array([1.0, 1.0, 4.0]), arriving=5.4).round(3)
    array([0.157, 0.157, 0.685])
    >>> least_delay(np.array([1.0, 1.0, 4.0]), arriving=1.0).round(3)
    array([0.007, 0.007, 0.987])
    """
    fastest_first = np.argsort(-speeds, kind="stable")
    roots = np.sqrt(speeds[fastest_first])
    c = (np.cumsum(roots**2) - arriving) / np.cumsum(roots)
    used = int(np.flatnonzero(roots > c).max(initial=0))
    given = np.maximum(speeds - max(float(c[used]), 0.0) * np.sqrt(speeds), 0.0)
    shares = given / given.sum() if given.sum() > 0 else np.full(len(speeds), 1 / len(speeds))
    least = PROBE / len(speeds)
    probed = np.maximum(shares, least)
    normalized: Floats = probed / probed.sum()
    return normalized


def backlog(loads: ReplicaLoads, replicas: Indices, seconds: Floats) -> Floats:
    """Seconds of waiting work that these replicas will not have done before a report is used.

    A report is heeded for about a period. In the part of it in which a replica has nothing to do,
    it works off what waits; only what is more than that is a backlog, and not a queue that comes
    and goes.
    """
    waiting = np.asarray(loads.queued, dtype=np.float64)[replicas] * seconds
    idle = loads.period * (1 - np.asarray(loads.utilization, dtype=np.float64)[replicas])
    behind: Floats = np.maximum(waiting - idle, 0.0)
    return behind


def level_after(levels: Floats, areas: Floats, volume: float) -> Floats:
    """What each vessel gets when `volume` is poured over vessels with these levels and areas.

    Poured over the k lowest alone it stands at (volume + Σ level·area) / Σ area, which is least
    when they are just those that it covers.

    >>> level_after(np.array([0.0, 1.0, 9.0]), np.ones(3), 5.0)
    array([3., 2., 0.])
    """
    order = np.argsort(levels)
    heights = (volume + np.cumsum((levels * areas)[order])) / np.cumsum(areas[order])
    given = areas * np.maximum(heights.min() - levels, 0.0)
    # Beside levels that are very high, a little volume is lost in rounding.
    parts: Floats = given if given.sum() > 0 else areas
    return parts * float(volume / parts.sum())


def in_shares(
    shares: Floats, credit: Floats, places: Indices, count: int
) -> tuple[Indices, Floats]:
    """Deal `count` events so that each replica has its share after any number of them.

    With a credit c and a share x, the k-th event of a replica is due when (k - c)/x have been
    dealt in all, and events are dealt in the order in which they are due. Equal shares are round
    robin.

    Args:
        shares: Of every replica; they add up to 1.
        credit: What each is owed from before, in events.
        places: Who comes first among those whose events are due together: the lowest.
        count: How many events there are to deal.

    Returns:
        The row of the replica for every event, and what replicas are owed now.
    """
    # Rounding down loses less than one event for each replica.
    all_due = count + len(shares) + max(-float(credit.sum()), 0.0)
    most = np.floor(shares * all_due + credit).astype(np.int64) + 1
    slots = np.where(shares > 0, np.clip(most, 0, count), 0)
    owner = np.repeat(np.arange(len(shares)), slots)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(slots) - slots, slots) + 1
    due = (number - credit[owner]) / shares[owner]
    rows = owner[np.lexsort((places[owner], due.round(_TIES)))[:count]]
    dealt = np.bincount(rows, minlength=len(shares))
    return rows, np.round(credit + count * shares - dealt, _DIGITS)


def one_in_shares(
    shares: Sequence[float], credit: Sequence[float], places: Sequence[int]
) -> tuple[int, list[float]]:
    """`in_shares` for one event: by far the most frequent case, and numpy is slow with so few.

    >>> one_in_shares([0.5, 0.5], [0.0, 0.25], [0, 1])
    (1, [0.5, -0.25])
    """
    due = [
        round((1 - owed) / share * 10**_TIES) if share > 0 else math.inf
        for share, owed in zip(shares, credit, strict=True)
    ]
    chosen = min(range(len(shares)), key=lambda row: (due[row], places[row]))
    after = [owed + share for share, owed in zip(shares, credit, strict=True)]
    after[chosen] -= 1
    return chosen, [round(owed * 10**_DIGITS) / 10**_DIGITS for owed in after]
