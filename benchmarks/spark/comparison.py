"""Latency, throughput and overhead of four operators, beside stock Structured Streaming."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.spark import beside_stock, stock
from benchmarks.spark.pipelines import active, change, line, pass_on, running, wait
from benchmarks.spark.processor_time import of_process
from benchmarks.spark.steady import Steady, steady
from benchmarks.spark.stock import STYLES
from elastream.engines.spark.driver.session import new_session

OPERATORS, REPLICAS = 4, 4
RATE = 2_000.0
FLOOD = 5_000_000.0
"""More than either gets through."""
MEAN_MS, P99_MS, SHARE_OF_STOCK = 85.0, 300.0, 0.1
EVENTS_PER_SECOND = 50_000.0
MICROSECONDS, IDLE_SHARE = 30.0, 0.05
IDLE_POOL, IDLE_SECONDS = 9, 20.0


def idle_cores(session: SparkSession) -> float:
    """What 32 inactive replicas take of a core, while one of each operator works."""
    topology = line(OPERATORS, IDLE_POOL, wait)
    with running(topology, RATE / 10, session) as run:
        run.engine.apply(active(topology, {}))
        time.sleep(5.0)
        idle = [process for (_, number), process in run.processes().items() if number > 0]
        before = sum(map(of_process, idle))
        time.sleep(IDLE_SECONDS)
        assert len(idle) == 32
        return (sum(map(of_process, idle)) - before) / IDLE_SECONDS


def main() -> bool:
    """Print both side by side."""
    session = new_session(2 * (OPERATORS * IDLE_POOL + 2) + 2)
    ours = steady(line(OPERATORS, REPLICAS, wait), RATE, session)
    flood = steady(line(OPERATORS, 1, pass_on), FLOOD, session)
    changed = steady(line(OPERATORS, 1, change), FLOOD, session)
    idle = idle_cores(session)
    session.stop()
    # As many tasks at once as there are replicas; for the flood, as many as cores.
    cores = os.cpu_count() or 2
    theirs = {style: stock.measured("wait", style, RATE, OPERATORS * REPLICAS) for style in STYLES}
    floods = {style: stock.measured("pass", style, FLOOD, cores) for style in STYLES}
    changes = stock.measured("change", "composed", FLOOD, cores)
    return report(
        f"Spark: {OPERATORS} operators, beside stock Structured Streaming",
        [
            *_latency(ours, theirs),
            *_throughput(flood, floods),
            Figure("throughput, operators that change every event", f"{changed.throughput:,.0f}/s"),
            Figure("stock, composed, the same", f"{changes.throughput:,.0f}/s", baseline=True),
            *_overhead(ours, theirs, idle),
        ],
    )


def _latency(ours: Steady, theirs: Mapping[str, Steady]) -> list[Figure]:
    mean, p99 = 1e3 * ours.mean, 1e3 * ours.p99
    share = ours.mean / min(of.mean for of in theirs.values())
    return [
        Figure(
            f"latency, {RATE:,.0f} events/s of 1 ms, {REPLICAS} replicas each: mean",
            f"{mean:,.0f} ms",
            f"{MEAN_MS:.0f} ms",
            mean <= MEAN_MS,
        ),
        Figure("p99", f"{p99:,.0f} ms", f"{P99_MS:.0f} ms", p99 <= P99_MS),
        *beside_stock.latencies(theirs),
        Figure(
            "our mean by the better stock's",
            f"{share:.3f}",
            f"{SHARE_OF_STOCK:.1f}",
            share <= SHARE_OF_STOCK,
        ),
    ]


def _throughput(ours: Steady, theirs: Mapping[str, Steady]) -> list[Figure]:
    least = max(EVENTS_PER_SECOND, *(of.throughput for of in theirs.values()))
    return [
        Figure(
            "throughput, operators that pass events on",
            f"{ours.throughput:,.0f}/s",
            f"{least:,.0f}/s",
            ours.throughput >= least,
        ),
        *beside_stock.throughputs(theirs),
    ]


def _overhead(ours: Steady, theirs: Mapping[str, Steady], idle: float) -> list[Figure]:
    assert ours.replicas is not None
    events = OPERATORS * ours.throughput
    each, whole = 1e6 * ours.replicas / events, 1e6 * ours.cores / events
    return [
        Figure(
            f"processor time per event and operator at {RATE:,.0f} events/s",
            f"{each:.0f} µs",
            f"{MICROSECONDS:.0f} µs",
            each <= MICROSECONDS,
        ),
        Figure("with the source, Java and the driver", f"{whole:.0f} µs"),
        *beside_stock.overheads(theirs, OPERATORS),
        Figure(
            "32 inactive replicas",
            f"{idle:.1%} of a core",
            f"{IDLE_SHARE:.0%}",
            idle < IDLE_SHARE,
        ),
    ]


if __name__ == "__main__":
    by_hand(main)
