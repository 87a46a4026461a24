"""What stock Structured Streaming takes, as every comparison with it prints it."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.measure import Figure
from benchmarks.spark.steady import Steady

ByStyle = Mapping[str, Steady]
"""Stock as people write it, and as an expert does."""


def latencies(theirs: ByStyle) -> list[Figure]:
    """The mean and the p99 of each."""
    return [
        Figure(
            f"stock, {style}: mean, p99",
            f"{1e3 * of.mean:,.0f}, {1e3 * of.p99:,.0f} ms",
            baseline=True,
        )
        for style, of in theirs.items()
    ]


def throughputs(theirs: ByStyle) -> list[Figure]:
    """What each passes on."""
    return [
        Figure(f"stock, {style}", f"{of.throughput:,.0f}/s", baseline=True)
        for style, of in theirs.items()
    ]


def overheads(theirs: ByStyle, operators: int) -> list[Figure]:
    """The processor time of each, per event and operator."""
    return [
        Figure(
            f"stock, {style}, all of it",
            f"{1e6 * of.cores / of.throughput / operators:.0f} µs",
            baseline=True,
        )
        for style, of in theirs.items()
    ]
