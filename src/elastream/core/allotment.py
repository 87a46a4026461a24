"""Allotment: how many of the workers that are there each operator gets.

With a worker for every replica, operators get what is wanted. With fewer, as on a cluster, the
minima come first, and then the bottleneck: the operator that wants the most for what it has.
"""

from __future__ import annotations

from collections.abc import Mapping

MARGIN = 1.25
"""How much worse off one operator must be than another will be, for a worker to move between them:
its next function has to be set up, and forecasts differ a little from one moment to the next."""


def allotted(
    wanted: Mapping[str, int], minima: Mapping[str, int], now: Mapping[str, int], workers: int
) -> dict[str, int]:
    """How many replicas every operator should have.

    Args:
        wanted: How many it should have if there were enough workers.
        minima: How many it must have before another one has more.
        now: How many it has; as few as possible change.
        workers: How many there are for all operators together.

    >>> want, least = {"parse": 2, "model": 6, "store": 1}, {"parse": 1, "model": 1, "store": 1}
    >>> allotted(want, least, now={}, workers=9)
    {'parse': 2, 'model': 6, 'store': 1}
    >>> allotted(want, least, now={}, workers=5)
    {'parse': 1, 'model': 3, 'store': 1}
    """
    if sum(wanted.values()) <= workers:
        return dict(wanted)
    least = {name: min(minima[name], count) for name, count in wanted.items()}
    share = {name: max(min(now.get(name, 0), wanted[name]), least[name]) for name in wanted}
    while sum(share.values()) > workers and any(share[name] > least[name] for name in share):
        share[_cheapest(wanted, share, least)] -= 1
    while sum(share.values()) < workers:
        share[_bottleneck(wanted, share)] += 1
    while any(share[name] > least[name] for name in share):
        giver, taker = _cheapest(wanted, share, least), _bottleneck(wanted, share)
        if giver == taker or _need(wanted, share, taker) < MARGIN * _loss(wanted, share, giver):
            break
        share[giver] -= 1
        share[taker] += 1
    return share


def _bottleneck(wanted: Mapping[str, int], share: Mapping[str, int]) -> str:
    return max(share, key=lambda name: _need(wanted, share, name))


def _cheapest(wanted: Mapping[str, int], share: Mapping[str, int], least: Mapping[str, int]) -> str:
    """Who would be best off with one less."""
    above = [name for name in share if share[name] > least[name]]
    return min(above, key=lambda name: _loss(wanted, share, name))


def _need(wanted: Mapping[str, int], share: Mapping[str, int], name: str) -> float:
    return wanted[name] / max(share[name], 1)


def _loss(wanted: Mapping[str, int], share: Mapping[str, int], name: str) -> float:
    return wanted[name] / max(share[name] - 1, 1)
