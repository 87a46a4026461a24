"""The cost model of BGElasor, equations 5 to 9: what a schedule of replicas costs.

A schedule is the number of replicas of one operator in every interval (an epoch in the paper), from
the current to the last. The paper writes p_o for the price of a replica and for the processing
capability; here they are `Prices.replica` and the `base` schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.errors import InvalidInputError

Schedule = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Prices:
    """What things cost, in any one unit."""

    replica: float = 8000.0
    """p: one replica for one interval."""
    startup: float = 5000.0
    """p^u: starting one replica."""
    shutdown: float = 5000.0
    """p^d: stopping one replica."""
    reroute: float = 100.0
    """p^r: telling producers about a change."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0 <= getattr(self, name) < np.inf:
                raise InvalidInputError(f"the price {name}={getattr(self, name)} must be 0 or more")


PUBLISHED_PRICES = Prices()
"""Those of section 4.3."""


def startups(schedule: ArrayLike) -> Schedule:
    """C^u_t = max(0, n_t+1 - n_t), for every change of interval (equation 6)."""
    return np.asarray(np.diff(_checked(schedule)).clip(min=0))


def shutdowns(schedule: ArrayLike) -> Schedule:
    """C^d_t = |min(0, n_t+1 - n_t)|, for every change of interval (equation 7)."""
    return np.asarray(-np.diff(_checked(schedule)).clip(max=0))


def reroutes(schedule: ArrayLike) -> Schedule:
    """C^r_t = 1 where n_t+1 ≠ n_t and else 0, for every change of interval (equation 8)."""
    return np.asarray(np.diff(_checked(schedule)) != 0, dtype=np.int64)


def cost(schedule: ArrayLike, prices: Prices = PUBLISHED_PRICES) -> float:
    """W(n) = p·Σ_t n_t + Σ_t (p^u·C^u_t + p^d·C^d_t + p^r·C^r_t) (equation 5).

    >>> cost([1, 3, 2], Prices(replica=10, startup=5, shutdown=2, reroute=1))
    74.0
    """
    return float(prices.replica * _checked(schedule).sum() + _cost_of_changes(schedule, prices))


def extra_cost(
    schedule: ArrayLike,
    base: ArrayLike,
    prices: Prices = PUBLISHED_PRICES,
) -> float:
    """ΔW(n) = p·Σ_t (n_t - base_t) + the cost of changes (equation 9).

    Args:
        schedule: Replicas in every interval.
        base: The fewest that the load of every interval allows: n_t - base_t ≥ 0 is the constraint.
        prices: What things cost.
    """
    extra = _checked(schedule) - _checked(base)
    if np.any(extra < 0):
        interval = int(np.argmax(extra < 0))
        raise InvalidInputError(
            f"the schedule is {-extra[interval]} replicas short in interval {interval}"
        )
    return float(prices.replica * extra.sum() + _cost_of_changes(schedule, prices))


def _cost_of_changes(schedule: ArrayLike, prices: Prices) -> float:
    return float(
        prices.startup * startups(schedule).sum()
        + prices.shutdown * shutdowns(schedule).sum()
        + prices.reroute * reroutes(schedule).sum()
    )


def _checked(schedule: ArrayLike) -> Schedule:
    replicas = np.asarray(schedule, dtype=np.int64)
    if replicas.ndim != 1 or not len(replicas) or np.any(replicas < 0):
        raise InvalidInputError(
            "a schedule is a list of replica counts, one per interval, each >= 0"
        )
    return replicas
