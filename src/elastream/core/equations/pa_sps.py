"""PA-SPS equations 1 to 7, and those of PRESPS, which differ in the forecast and the queue.

| quantity | PA-SPS | PRESPS |
| --- | --- | --- |
| utilisation of a replica | 1 | 7 |
| replicas | 2 | 1 |
| events to process | 3 | 6 |
| events received | 4, from a forecast | 2, from the last input |
| share of the input | 5 | 3 |
| share of a predecessor's output | 6 | 4 |
| events queued | 7, here and upstream | 5, here |
"""

from __future__ import annotations

import math
from collections.abc import Iterable

_ROUNDING = 1e-12
"""Relative error that a product of floats may carry: 2.0000000000000004 replicas are 2."""


def utilization(processed: float, execution_time: float, duration: float) -> float:
    """U_i,j(t) = μ_i,j(t)·et_i / td, between 0 and 1 (PA-SPS equation 1, PRESPS equation 7).

    >>> utilization(processed=400, execution_time=0.002, duration=1.0)
    0.8
    """
    return min(max(processed * execution_time / duration, 0.0), 1.0)


def replicas(
    expected: float, execution_time: float, duration: float, minimum: int, pool: int
) -> int:
    """r_i(t+1) = ⌈λ̂_i(t+1)·et_i / td⌉, within the pool (PA-SPS equation 2, PRESPS equation 1).

    >>> [replicas(10, et, 1.0, minimum=1, pool=8) for et in (0.2, 0.1, 0.4)]
    [2, 1, 4]
    """
    needed = expected * execution_time / duration
    if math.isnan(needed):
        # Unboundedly many events of no cost: any number will do, and the pool is the safe one.
        return pool
    if needed >= pool:
        return pool
    return max(minimum, math.ceil(needed * (1 - _ROUNDING)))


def expected_events(received: float, queued: float) -> float:
    """λ̂_i(t+1) = λ̂_i^r(t+1) + λ̂_i^q(t+1) (PA-SPS equation 3, PRESPS equation 6)."""
    return received + queued


def received_events(forecast: float, share: float) -> float:
    """λ̂_i^r(t+1) = λ̂_G(t+1)·θ_i(t) (PA-SPS equation 4).

    PRESPS equation 2 is the same with λ_G(t), the last interval's input, for the forecast.
    """
    return forecast * share


def input_share(predecessors: Iterable[tuple[float, float]]) -> float:
    """θ_i(t) = Σ_p θ_i^p(t)·θ_p(t) (PA-SPS equation 5, PRESPS equation 3).

    Args:
        predecessors: θ_i^p and θ_p for every predecessor p.
    """
    return sum([share_of_output * share for share_of_output, share in predecessors])


def output_share(received: float, processed: float, otherwise: float) -> float:
    """θ_i^p(t) = λ_i^p(t) / μ_p(t) (PA-SPS equation 6, PRESPS equation 4).

    Args:
        received: What i received from p.
        processed: What p processed.
        otherwise: The share to assume when p processed nothing, which says nothing about it.
    """
    return received / processed if processed > 0 else otherwise


def queued_events(own: float, predecessors: Iterable[tuple[float, float]]) -> float:
    """λ̂_i^q(t+1) = |q_i(t)| + Σ_p λ̂_p^q(t+1)·θ_i^p(t) (PA-SPS equation 7).

    The equation is printed with θ_p(t), p's share of the whole input. The text says that queued
    events flow down in the proportion in which p sends its events to i, which is θ_i^p(t).
    PRESPS equation 5 is the same without predecessors.

    Args:
        own: What waits for i itself.
        predecessors: λ̂_p^q and θ_i^p for every predecessor p.
    """
    return own + sum([queued * share_of_output for queued, share_of_output in predecessors])
