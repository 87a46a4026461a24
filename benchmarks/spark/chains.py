"""Four operators in a chain, beside the same four with hops, and beside stock.

`python -m benchmarks.spark.chains ours` leaves out all but the chain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.spark import beside_stock, stock
from benchmarks.spark.pipelines import line, pass_on, wait
from benchmarks.spark.steady import Steady, steady
from benchmarks.spark.stock import STYLES
from elastream.engines.spark.driver.session import new_session

OPERATORS, POOL = 4, 16
RATE = 2_000.0
FLOOD = 8_000_000.0
"""More than either gets through."""
MEAN_MS, SHARE_OF_STOCK, TIMES_STOCK = 60.0, 0.1, 1.5


def ours() -> tuple[Steady, Steady]:
    """Latency of work that waits, and throughput of functions that pass events on."""
    session = new_session(2 * (POOL + 1) + 4)
    waiting = steady(line(OPERATORS, POOL, wait, chain=True), RATE, session)
    flood = steady(line(OPERATORS, 1, pass_on, chain=True), FLOOD, session)
    session.stop()
    return waiting, flood


def main() -> bool:
    """Print both side by side."""
    waiting, flood = ours()
    cores = os.cpu_count() or 2
    theirs = {style: stock.measured("wait", style, RATE, POOL) for style in STYLES}
    floods = {style: stock.measured("pass", style, FLOOD, cores) for style in STYLES}
    tried = stock.real_time(RATE, POOL)
    return report(
        f"Spark: {OPERATORS} operators in a chain, beside stock Structured Streaming",
        [
            *_latency(waiting, theirs),
            *_throughput(flood, floods),
            *_overhead(waiting, theirs),
            Figure("stock in real-time mode, Python functions", tried, baseline=True),
        ],
    )


def _latency(ours: Steady, theirs: Mapping[str, Steady]) -> list[Figure]:
    share = ours.mean / min(of.mean for of in theirs.values())
    return [
        Figure(
            f"latency, {RATE:,.0f} events/s of 1 ms at each, a pool of {POOL}: mean",
            f"{1e3 * ours.mean:,.0f} ms",
            f"{MEAN_MS:.0f} ms",
            1e3 * ours.mean <= MEAN_MS,
        ),
        Figure("p99", f"{1e3 * ours.p99:,.0f} ms"),
        *beside_stock.latencies(theirs),
        Figure(
            "our mean by the better stock's",
            f"{share:.3f}",
            f"{SHARE_OF_STOCK:.1f}",
            share <= SHARE_OF_STOCK,
        ),
    ]


def _throughput(ours: Steady, theirs: Mapping[str, Steady]) -> list[Figure]:
    best = max(of.throughput for of in theirs.values())
    return [
        Figure(
            "throughput, operators that pass events on, one replica",
            f"{ours.throughput:,.0f}/s",
            f"{TIMES_STOCK * best:,.0f}/s",
            ours.throughput >= TIMES_STOCK * best,
        ),
        *beside_stock.throughputs(theirs),
    ]


def _overhead(ours: Steady, theirs: Mapping[str, Steady]) -> list[Figure]:
    assert ours.replicas is not None
    events = OPERATORS * ours.throughput
    return [
        Figure(
            f"processor time per event and operator at {RATE:,.0f} events/s",
            f"{1e6 * ours.replicas / events:.0f} µs",
        ),
        Figure("with the source, Java and the driver", f"{1e6 * ours.cores / events:.0f} µs"),
        *beside_stock.overheads(theirs, OPERATORS),
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["ours"]:
        for one in ours():
            print(one)
    else:
        by_hand(main)
