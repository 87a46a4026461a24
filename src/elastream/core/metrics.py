"""The papers' metrics of a run, each defined for zeros, too.

Saved resources, throughput degradation, latency, processed events and the two errors are those of
PA-SPS section 4.1.3; the cost is that of BGElasor. All are shares unless a unit is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.equations import bgelasor
from elastream.core.latency import LatencyHistogram
from elastream.core.stats import Latency


def saved_resources(costing: ArrayLike, overprovisioned: float) -> float:
    """1 - r/r_over, with r the mean number of replicas that cost; 0 when nothing was deployed.

    Args:
        costing: Active and draining replicas of all operators together, in every interval.
        overprovisioned: r_over, the replicas that the highest peak needs.

    >>> saved_resources([8, 16], overprovisioned=32)
    0.625
    """
    replicas = _numbers(costing)
    if overprovisioned <= 0 or not replicas.size:
        return 0.0
    return float(1 - replicas.mean() / overprovisioned)


def throughput_degradation(arrived: ArrayLike, processed: ArrayLike) -> float:
    """|input - output| / input, averaged over the windows that had input; 0 when none had.

    How long a window is decides what counts: what comes out a little later than it came in is made
    good within a long one. The authors of PA-SPS record both every 5 s.

    >>> throughput_degradation([100, 0, 50], [80, 20, 50])
    0.1
    """
    return relative_error(arrived, processed) or 0.0


def processed_ratio(arrived: float, processed: float) -> float:
    """Events processed to the end per event that arrived; 1 when none did."""
    return processed / arrived if arrived > 0 else 1.0


def relative_error(truth: ArrayLike, estimate: ArrayLike) -> float | None:
    """MAPE as a share: |x - x̂| / x, averaged over what is not 0; None when all is.

    >>> relative_error([100, 0, 200], [75, 7, 250])
    0.25
    """
    actual, expected = _numbers(truth), _numbers(estimate)
    counted = actual > 0
    if not counted.any():
        return None
    return float(np.mean(np.abs(actual[counted] - expected[counted]) / actual[counted]))


def replica_seconds(costing: ArrayLike, durations: ArrayLike) -> float:
    """Σ r(t)·td: what the replicas that cost add up to, in seconds."""
    return float(np.sum(_numbers(costing) * _numbers(durations)))


def rescales(schedules: Sequence[ArrayLike]) -> int:
    """How often the replicas of an operator changed in number, all operators together.

    >>> rescales([[1, 2, 2, 1], [3, 3, 3, 3]])
    2
    """
    return int(sum(np.count_nonzero(np.diff(_numbers(schedule))) for schedule in schedules))


def cost(
    schedules: Sequence[ArrayLike], prices: bgelasor.Prices = bgelasor.PUBLISHED_PRICES
) -> float:
    """W of BGElasor equation 5, in its prices' unit, added up over operators; 0 without intervals.

    Args:
        schedules: For every operator its replicas, one number per interval.
        prices: What a replica and its start and end cost.
    """
    counted = [schedule for schedule in schedules if _numbers(schedule).size]
    return float(sum(bgelasor.cost(schedule, prices) for schedule in counted))


def extra_cost(
    schedules: Sequence[ArrayLike],
    needed: Sequence[ArrayLike],
    prices: bgelasor.Prices = bgelasor.PUBLISHED_PRICES,
) -> float:
    """ΔW of BGElasor equation 9: what was spent beyond the fewest replicas that the load allows.

    Where there were fewer than needed, there is nothing beyond.
    """
    pairs = [(_numbers(n), _numbers(need)) for n, need in zip(schedules, needed, strict=True)]
    return float(
        sum(bgelasor.extra_cost(n, np.minimum(n, need), prices) for n, need in pairs if n.size)
    )


@dataclass(frozen=True, slots=True)
class LatencyMs:
    """End-to-end latency of all events that reached the end, in milliseconds."""

    mean: float
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, latencies: Sequence[Latency]) -> LatencyMs | None:
        """Of the intervals of a run, each with its histogram; None when nothing reached the end."""
        total = sum(latency.count for latency in latencies)
        if total <= 0:
            return None
        mean = sum(latency.mean * latency.count for latency in latencies) / total
        histogram = LatencyHistogram.sum(
            latency.histogram for latency in latencies if latency.histogram
        )
        return cls(
            1000 * mean, *(1000 * seconds for seconds in histogram.quantiles(0.5, 0.95, 0.99))
        )


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """All metrics of one run."""

    saved_resources: float
    throughput_degradation: float
    processed_ratio: float
    latency_ms: LatencyMs | None
    """None when nothing reached the end."""
    input_error: float | None
    """Of the forecast of each interval's input; None when nothing was forecast."""
    replica_error: float | None
    """Of the active replicas against those that would just have been enough."""
    replica_seconds: float
    executor_seconds: float | None
    """What is paid for on a cluster; None where there are no executors."""
    rescales: int
    events_in: float
    events_out: float
    cost: float
    extra_cost: float
    """The cost beyond the replicas that the load needed."""
    cpu_seconds: float
    """Processor time of all replicas."""

    def as_dict(self) -> dict[str, Any]:
        """Names and plain values, ready for JSON."""
        return asdict(self)


def _numbers(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)
