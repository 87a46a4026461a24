"""What `slo` reads from the intervals so far."""

from __future__ import annotations

from statistics import median

from elastream.core.arrivals import Arrivals, recent_arrivals
from elastream.core.demand import SHARE_SECONDS, recent_intervals
from elastream.core.slowest_path import SlowestPaths
from elastream.core.stats import Latency, OperatorStats
from elastream.policies.base import Context

COUNTED_INTERVALS = 128
"""How many intervals back the rate is looked for."""
COMPARED, EVERY = 40, 4
"""How many intervals, and every how many of them, measurement and model are compared in."""
P99 = 0.99
"""The quantile that need not be looked up in a histogram."""


def arriving(context: Context) -> Arrivals:
    """What arrives at all sources, whether or not they could send it."""
    past = context.past[-COUNTED_INTERVALS - 1 :][::-1]
    befores = (*past[1:], past[-1])
    counts = [
        max(stats.input + stats.held - before.held, 0.0)
        for stats, before in zip(past, befores, strict=True)
    ]
    return recent_arrivals(counts, [stats.duration for stats in past])


def unexplained(context: Context, quantile: float) -> float:
    """By how much the recent latency usually exceeded what queues explain, in seconds."""
    costs, found = context.costs, []
    for stats in context.past[-1 : -COMPARED - 1 : -EVERY]:
        if stats.latency is None:
            continue
        waits = {
            name: (_queue(of) / max(of.active, 1) + 1) * costs[name]
            for name, of in stats.operators.items()
            if name in costs
        }
        measured = _measured(stats.latency, quantile)
        found.append(measured - SlowestPaths(context.topology, waits).longest)
    return max(median(found), 0.0) if found else 0.0


def waiting(context: Context, name: str) -> float:
    """What waits for an operator, including its share at the sources right before it."""
    held = [
        context.recent_shares[edge.origin, name] * context.stats.sources[edge.origin].queued
        for edge in context.topology.incoming[name]
        if edge.origin in context.stats.sources
    ]
    return _queue(context.stats.operators[name]) + sum(held)


def is_unreached(context: Context, name: str) -> bool:
    """Whether no event has come to an operator in all the time that shares are counted over."""
    recent = recent_intervals(context.past, SHARE_SECONDS)
    return sum([stats.duration for stats in recent]) >= SHARE_SECONDS and not any(
        stats.operators[name].received or stats.operators[name].queued for stats in recent
    )


def _measured(latency: Latency, quantile: float) -> float:
    """A quantile of what was measured, in seconds; p99 if the engine keeps no histogram."""
    if quantile == P99 or latency.histogram is None:
        return latency.p99
    return latency.histogram.quantile(quantile)


def _queue(of: OperatorStats) -> float:
    """What waits for an operator: of the events that it has, one at least is at work."""
    return max(of.queued - 1.0, 0.0)
