"""How long events wait for c replicas: G/G/c, in the long run and within a short time.

In the long run the mean wait is that of Allen and Cunneen, with Sakasegawa's approximation of how
likely an event waits at all (Sakasegawa, An approximation formula L_q ≈ α·ρ^β/(1-ρ), 1977; Whitt,
Approximations for the GI/G/m queue, 1993), and the tail is exponential (Kingman 1962):

    P(W > 0) ≈ ρ^(√(2(c+1)) - 1),   E(W) ≈ P(W > 0) · et / (c·(1-ρ)) · (c_a² + c_s²)/2

Near ρ = 1, the long run takes longer than it takes to add replicas: within t seconds, the wait
cannot exceed what chance and overload add up to. From an empty queue, arrivals and
completions drift apart by (ρ-1)·t, and their difference spreads like a Brownian motion (Iglehart
and Whitt 1970), with a standard deviation of √((c_a² + c_s²)·λ·t) events.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist


@cache
def normal_quantile(share: float) -> float:
    """z: how many standard deviations above the mean this share of a normal distribution ends.

    >>> round(normal_quantile(0.99), 2)
    2.33
    """
    return NormalDist().inv_cdf(share)


def wait_quantile(
    rate: float,
    execution_time: float,
    replicas: int,
    quantile: float,
    arrivals: float = 1.0,
    services: float = 1.0,
    within: float = math.inf,
) -> float:
    """The wait that this share of events does not exceed, in seconds.

    Args:
        rate: λ, in events per second.
        execution_time: et, in seconds per event.
        replicas: c.
        quantile: The share.
        arrivals: c_a²: variance over mean of how many arrive; 1 for a Poisson process.
        services: c_s²: the squared variation of execution times; 1 for exponential ones.
        within: For how long rate and replicas stay as they are, from an empty queue on, in seconds.

    M/M/1 at 90 %: the wait is exponential beyond P(W > 0) = 0.9, so 99 % wait less than 45 ms.

    >>> round(1000 * wait_quantile(900, 0.001, 1, 0.99))
    45
    >>> wait_quantile(900, 0.001, 2, 0.99, within=0.5) < 0.005
    True

    Too few replicas: in 2 s the queue grows by 200 events, and a little more by chance.

    >>> round(wait_quantile(1100, 0.001, 1, 0.99, within=2.0), 2)
    0.35
    """
    if rate <= 0 or execution_time <= 0:
        return 0.0
    utilization = rate * execution_time / replicas
    spread = arrivals + services
    bound = math.inf
    if math.isfinite(within):
        chance = normal_quantile(quantile) * math.sqrt(spread * rate * within)
        grown = (utilization - 1) * within + chance * execution_time / replicas
        bound = max(grown, 0.0)
    if utilization >= 1:
        return bound
    waiting = utilization ** (math.sqrt(2 * (replicas + 1)) - 1)
    if waiting <= 1 - quantile:
        return 0.0
    mean = execution_time / (replicas * (1 - utilization)) * spread / 2
    return min(mean * math.log(waiting / (1 - quantile)), bound)
