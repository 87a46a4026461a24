"""AUTOSCALE+ equations 3 to 13 (DABS-Storm section 4).

Processor time is a fraction of one core, where the paper writes percent. Capacities are in events
per period Δ and per replica; a capacity is infinite when events take no time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from elastream.core.equations.pa_sps import replicas

Combine = Callable[[float, float], float]


def estimated_received(regression: Iterable[float]) -> float:
    """EstimR^i,j = Σ_p f(m_p), with f at the next window's timestamps m_p (equation 3).

    A regression may fall below zero; an input cannot.
    """
    return sum(max(value, 0.0) for value in regression)


def estimated_output(estimated_input: float, selectivity: float) -> float:
    """EstimOutput^i,j = EstimInput^i,j · ᾱ (equation 4)."""
    return estimated_input * selectivity


def estimated_input(
    received: float, parents: Iterable[float], pending: float, combine: Combine = max
) -> float:
    """EstimInput^i,j = combine(EstimR^i,j, Σ_p EstimOutput^p,j) + pending^i,j-1 (equation 5).

    Args:
        received: EstimR, from the operator's own history.
        parents: EstimOutput of every parent; none for an operator that reads a source, which has
            its own history only.
        pending: What waits in its queue.
        combine: `max` is cautious about scaling in; `min` spares resources.
    """
    outputs = list(parents)
    return (combine(received, sum(outputs)) if outputs else received) + pending


def ideal_capacity(period: float, latency: float) -> float:
    """IdealCapacity^i,j = Δ / Lat^i,j (equation 6)."""
    return period / latency if latency > 0 else math.inf


def usable_cpu(
    used: float, reserved: float, used_by_others: Iterable[float], weight: float = 0.3
) -> float:
    """UtilCPU(T_X) = λ·max(UtilCPU(T_X), ResaCPU_X) + (1 - Σ_Y≠X UtilCPU(T_Y)) / n (equation 7).

    The part of its core that a replica could use: what is free is shared by the n replicas on the
    core. The sum can pass 1 as printed; a core has no more to give.
    """
    others = list(used_by_others)
    free = max(1.0 - sum(others), 0.0) / (len(others) + 1)
    return min(weight * max(used, reserved) + free, 1.0)


def operator_cpu(of_replicas: Iterable[float]) -> float:
    """UtilCPU_i = min_x UtilCPU(T_i^x) (equation 8); a whole core when no replica is known."""
    return min(of_replicas, default=1.0)


def capacity(period: float, latency: float, cpu: float) -> float:
    """Capacity^i,j = Δ / Lat^i,j · UtilCPU_i (equation 9)."""
    return ideal_capacity(period, latency) * cpu if cpu > 0 else 0.0


def ideal_degree(estimated: float, capacity_each: float) -> float:
    """The ideal idealK = EstimInput^i,j / Capacity^i,j (equation 10); infinite without capacity."""
    if estimated <= 0:
        return 0.0
    return estimated / capacity_each if capacity_each > 0 else math.inf


def lower_bound(degree: int, beta: float = 0.8) -> float:
    """min_k = β·k, the lower end of the working interval (equation 11)."""
    return beta * degree


def must_change(ideal: float, degree: int, beta: float = 0.8) -> bool:
    """Whether idealK lies outside of the working interval [min_k, k] (figure 4)."""
    return not lower_bound(degree, beta) <= ideal <= degree


def new_degree(estimated: float, reserved_capacity_each: float, minimum: int, pool: int) -> int:
    """The smallest k' with EstimInput^i,j / ResCapacity^i,j ≤ k', within the pool (equation 12)."""
    needed = ideal_degree(estimated, reserved_capacity_each)
    return replicas(needed, execution_time=1.0, duration=1.0, minimum=minimum, pool=pool)


def reserved_capacity(period: float, latency: float, reserved: float, weight: float = 0.3) -> float:
    """ResCapacity^i,j = Δ / Lat^i,j · ResCPU_i · λ (equation 13).

    The text below the equation calls the factor α; the equation and the settings call it λ.
    """
    return capacity(period, latency, reserved * weight)
