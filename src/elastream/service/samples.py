"""One sampling window as the API reports it: rates per second."""

from __future__ import annotations

from typing import Any

from elastream.control.expectation import ExpectedRate, arrival_rate
from elastream.core.evaluation import events_out
from elastream.core.stats import IntervalStats, OperatorStats
from elastream.core.topology import Topology

WHOLE = (
    "input",
    "forecast",
    "forecast_low",
    "forecast_high",
    "throughput",
    "latency_p50",
    "latency_p99",
    "executors",
    "executor_seconds",
)
"""The fields of the whole pipeline: events per second, seconds, and executors where there are any.
"""
PER_OPERATOR = ("active", "queued", "utilization", "received", "processed")
DIGITS = 4

Sample = dict[str, Any]


def sample_of(
    topology: Topology,
    stats: IntervalStats,
    time: float,
    expected: ExpectedRate | None,
    executor_seconds: float | None = None,
) -> Sample:
    """What happened in a window that ended at `time`, and the forecast for it.

    Executor-seconds are those since the start.
    """
    seconds, latency = stats.duration, stats.latency
    low, high = expected.band or (None, None) if expected else (None, None)
    return {
        "time": round(time, DIGITS),
        "input": round(arrival_rate(stats), DIGITS),
        "forecast": round(expected.rate, DIGITS) if expected else None,
        "forecast_low": None if low is None else round(low, DIGITS),
        "forecast_high": None if high is None else round(high, DIGITS),
        "throughput": round(events_out(topology, stats) / seconds, DIGITS),
        "latency_p50": round(latency.p50, DIGITS) if latency else None,
        "latency_p99": round(latency.p99, DIGITS) if latency else None,
        "executors": stats.executors.present if stats.executors else None,
        "executor_seconds": None if executor_seconds is None else round(executor_seconds, DIGITS),
        "operators": {
            name: {
                "active": of.active,
                "queued": round(of.queued, DIGITS),
                "utilization": round(of.utilization(seconds), DIGITS),
                "received": round(of.received / seconds, DIGITS),
                "processed": round(of.processed / seconds, DIGITS),
            }
            for name, of in stats.operators.items()
        },
        "inside": {
            name: {inner: _inside(part, seconds) for inner, part in of.inside.items()}
            for name, of in stats.operators.items()
            if of.inside
        },
        "edges": {
            f"{origin}>{target}": round(events / seconds, DIGITS)
            for (origin, target), events in stats.edges.items()
        },
    }


def _inside(of: OperatorStats, seconds: float) -> dict[str, float | None]:
    """What an operator inside a chain did: events per second, and seconds per event."""
    each = of.execution_time
    return {
        "received": round(of.received / seconds, DIGITS),
        "processed": round(of.processed / seconds, DIGITS),
        "set_aside": of.set_aside,
        "execution_time": None if each is None else round(each, 2 * DIGITS),
    }
