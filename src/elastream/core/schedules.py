"""Replicas of one operator over several intervals, when the load of each is known.

`need[t]` is how many replicas the load of interval t takes, and `need[0]` belongs to the current
one. A schedule starts with the replicas that run now, and never has fewer than needed.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike

from elastream.core.equations.bgelasor import PUBLISHED_PRICES, Prices, Schedule


def proactive_schedule(now: int, need: ArrayLike) -> Schedule:
    """SPEA: replicas for the current and the next interval, whichever needs more.

    Replicas come just before the load that needs them, and go once it has really fallen. This is
    also what step 1 of CBA makes: it starts replicas in the interval before a rise, and stops them
    in the interval of a fall.

    >>> proactive_schedule(1, [1, 3, 1, 1]).tolist()
    [1, 3, 3, 1]
    """
    needed = np.asarray(need, dtype=np.int64)
    return np.concatenate([[now], np.maximum(needed[:-1], needed[1:])])


def balanced_schedule(now: int, need: ArrayLike, prices: Prices = PUBLISHED_PRICES) -> Schedule:
    """CBA: SPEA's schedule after all changes that lower its cost (BGElasor algorithm 1).

    Step 2 merges changes, when one change of routing less is worth more than keeping replicas for
    the intervals between; step 3 cancels a stop that a start follows, when keeping the replicas is
    cheaper than stopping and starting them.
    """
    schedule = proactive_schedule(now, need)
    changes = np.diff(schedule)
    _merge(changes, prices)
    while _cancel_once(changes, prices):
        pass
    return np.concatenate([schedule[:1], schedule[0] + np.cumsum(changes)])


def _merge(changes: Schedule, prices: Prices) -> None:
    """Step 2: a start joins one in the interval before, a stop one in the interval after."""
    for interval in range(len(changes) - 1, 0, -1):
        if changes[interval] > 0 and changes[interval - 1] > 0:
            _move(changes, interval, interval - 1, prices)
    for interval in range(len(changes) - 1):
        if changes[interval] < 0 and changes[interval + 1] < 0:
            _move(changes, interval, interval + 1, prices)


def _move(changes: Schedule, origin: int, target: int, prices: Prices) -> None:
    if prices.reroute > prices.replica * abs(changes[origin]):
        changes[target] += changes[origin]
        changes[origin] = 0


def _cancel_once(changes: Schedule, prices: Prices) -> bool:
    """Step 3, once: whether a stop and the start after it were cancelled, as far as they match."""
    acts = np.flatnonzero(changes)
    for down, up in itertools.pairwise(acts):
        if not changes[down] < 0 < changes[up]:
            continue
        matched = min(-changes[down], changes[up])
        change = (prices.shutdown + prices.startup) * matched + prices.reroute
        if change > prices.replica * matched * (up - down):
            changes[down] += matched
            changes[up] -= matched
            return True
    return False


def cheapest_schedule(
    now: int, need: ArrayLike, most: int, prices: Prices = PUBLISHED_PRICES
) -> Schedule:
    """The schedule of least cost (BGElasor equation 9), by dynamic programming; exact.

    The cheapest way to have n replicas in an interval is the cheapest way to have any n' in the one
    before, and then to change from n' to n. An interval that needs more than `most` gets `most`.
    """
    needed = np.minimum(np.asarray(need, dtype=np.int64), most)
    counts = np.arange(most + 1)
    added = counts - counts[:, np.newaxis]
    change = (
        prices.startup * np.maximum(added, 0)
        + prices.shutdown * np.maximum(-added, 0)
        + prices.reroute * (added != 0)
    )
    total = np.where(counts == now, 0.0, np.inf)
    came_from = []
    for least in needed[1:]:
        ways = total[:, np.newaxis] + change
        came_from.append(ways.argmin(axis=0))
        total = ways.min(axis=0) + np.where(counts >= least, prices.replica * counts, np.inf)
    schedule = [int(total.argmin())]
    for before in reversed(came_from):
        schedule.append(int(before[schedule[-1]]))
    return np.array(schedule[::-1], dtype=np.int64)
