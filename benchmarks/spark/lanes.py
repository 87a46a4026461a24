"""Lanes when things get rough: a backlog, keys, a hot key, a slow event, a stale producer."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.spark.elasticity import Output
from benchmarks.spark.pipelines import Running, active, all_active, line, running, wait
from benchmarks.spark.steady import steady
from elastream import Pipeline
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.session import new_session
from elastream.engines.spark.worker.trace_player import TraceSource

POOL, BACKLOG, LARGE_BACKLOG = 8, 50_000, 200_000
ALL_WORK_SECONDS, STALL_SECONDS = 0.5, 0.25
RATE, KEYS, HOT_SHARE = 1_000.0, 1_000, 0.3
SLOW_SECONDS = 2.0
SLOW_ID = 4_000


def backlog(session: SparkSession, events: int) -> tuple[float, float]:
    """Until all replicas work on a backlog after the pool has doubled, and the longest stall.

    The stall counts from the moment before the plan: changing hands is part of it.
    """
    topology = line(1, POOL, wait)
    with running(topology, 20_000.0, session, queue_size=2 * events) as run:
        run.engine.apply(active(topology, {"step0": POOL // 2}))
        while run.connection.ledger.totals().waiting("step0") < events:
            time.sleep(0.05)
        output = Output(run, "step0")
        started, before = output.look()
        run.engine.apply(all_active(topology))
        idle = set(range(POOL // 2, POOL))
        taken = 0.0
        for now, replicas in output.looks(10.0):
            idle -= {n for n in idle if replicas.get(n, 0) > before.get(n, 0)}
            taken = now - started
            if not idle:
                break
        return taken, output.longest_stall(3.0)


def keyed_events(hot: float) -> Callable[[int, int], pa.Table]:
    """Events with a key each; this share of them has the same one."""

    def make(first: int, count: int) -> pa.Table:
        numbers = np.arange(first, first + count)
        keys = np.where(numbers % 100 < 100 * hot, 0, numbers % KEYS)
        return pa.table({"id": numbers, "key": keys})

    return make


def hot_key(session: SparkSession) -> tuple[float, float, int]:
    """The busiest replica's share with a hot key, the p99, and its lanes beside the hot one."""
    topology = line(1, 4, wait, grouping="key", key="key", lanes=32)
    source = TraceSource(keyed_events(HOT_SHARE), 1.0, np.full(600, RATE))
    with tempfile.TemporaryDirectory() as folder:
        engine = SparkEngine(topology, {"events": source}, Path(folder), session)
        engine.apply(all_active(topology))
        time.sleep(25.0)
        engine.observe()
        time.sleep(15.0)
        stats = engine.observe()
        owners = engine._placement.plan.owners["step0"]
        engine.close()
    done = [of.processed for of in stats.operators["step0"].replicas.values()]
    busiest = max(stats.operators["step0"].replicas.items(), key=lambda each: each[1].processed)[0]
    assert stats.latency is not None
    return max(done) / sum(done), stats.latency.p99, owners.count(busiest) - 1


def slow_event(session: SparkSession) -> float:
    """The longest stall of all others when a lane changes hands under an event of two seconds."""

    def sleepy(table: pa.Table) -> pa.Table:
        ids = table["id"].to_pylist()
        time.sleep(SLOW_SECONDS if SLOW_ID in ids else 0.001 * len(ids))
        return table

    pipeline = Pipeline("slow")
    pipeline.add(sleepy, after=pipeline.source("events"), name="step0", pool=4)
    topology = pipeline.topology()
    with running(topology, RATE, session) as run:
        run.engine.apply(all_active(topology))
        output = Output(run, "step0")
        while sum(run.processed("step0").values()) < SLOW_ID:
            time.sleep(0.01)
        stall = 0.0
        for replicas in (2, 4, 2, 4):
            run.engine.apply(active(topology, {"step0": replicas}))
            stall = max(stall, output.longest_stall(1.0))
        return stall


def stale_producer(session: SparkSession) -> tuple[int, float]:
    """What is missing after a producer slept through a plan, and how soon it was caught up."""
    topology = line(1, 4, wait)
    with running(topology, RATE, session) as run:
        run.engine.apply(active(topology, {"step0": 3}))
        time.sleep(2.0)
        source = run.processes()["events", 0]
        os.kill(source, signal.SIGSTOP)
        run.engine.apply(active(topology, {"step0": 1}))
        time.sleep(2.0)
        os.kill(source, signal.SIGCONT)
        started = time.monotonic()
        run.engine.apply(all_active(topology))
        while (
            run.connection.ledger.totals().waiting("step0") > 200 or time.monotonic() < started + 1
        ):
            time.sleep(0.02)
        caught_up = time.monotonic() - started
        run.engine.drain(30.0)
        counts = run.connection.ledger.totals().counts
        return counts["events", 0].emitted - sum(_processed(run).values()), caught_up


def _processed(run: Running) -> dict[int, int]:
    return run.processed("step0")


def main() -> bool:
    """Print the figures."""
    session = new_session(2 * (4 * 4 + 2) + 2)
    all_work, stall = backlog(session, BACKLOG)
    _, large_stall = backlog(session, LARGE_BACKLOG)
    by_key = steady(line(4, 4, wait, grouping="key", key="id", lanes=32), 2 * RATE, session)
    unkeyed = steady(line(4, 4, wait), 2 * RATE, session)
    share, p99, beside = hot_key(session)
    slow = slow_event(session)
    missing, caught_up = stale_producer(session)
    session.stop()
    events = 4 * unkeyed.throughput
    return report(
        "Spark: lanes",
        [
            Figure(
                f"a backlog of {BACKLOG:,} events, pool doubled: until all replicas work on it",
                f"{1e3 * all_work:.0f} ms",
                f"{1e3 * ALL_WORK_SECONDS:.0f} ms",
                all_work <= ALL_WORK_SECONDS,
            ),
            Figure(
                "longest stall meanwhile",
                f"{1e3 * stall:.0f} ms",
                f"{1e3 * STALL_SECONDS:.0f} ms",
                stall <= STALL_SECONDS,
            ),
            Figure(
                f"a backlog of {LARGE_BACKLOG:,} events, pool doubled: longest stall",
                f"{1e3 * large_stall:.0f} ms",
                f"{1e3 * STALL_SECONDS:.0f} ms",
                large_stall <= STALL_SECONDS,
            ),
            Figure(
                "key with 32 lanes, four operators, 2,000 events/s of 1 ms: mean",
                f"{1e3 * by_key.mean:.0f} ms",
            ),
            Figure("the same without a key", f"{1e3 * unkeyed.mean:.0f} ms"),
            Figure(
                "processor time per event and operator, key",
                f"{1e6 * (by_key.replicas or 0) / events:.0f} µs",
            ),
            Figure("without a key", f"{1e6 * (unkeyed.replicas or 0) / events:.0f} µs"),
            Figure(
                f"a key with {HOT_SHARE:.0%} of the events: share of the busiest of four replicas",
                f"{share:.0%}",
                f"{HOT_SHARE + 0.1:.0%}",
                share <= HOT_SHARE + 0.1,
            ),
            Figure("p99 then", f"{1e3 * p99:.0f} ms"),
            Figure("lanes that its replica has besides", f"{beside}"),
            Figure(
                f"an event of {SLOW_SECONDS:g} s while lanes change hands: longest stall",
                f"{1e3 * slow:.0f} ms",
                f"{1e3 * STALL_SECONDS:.0f} ms",
                slow <= STALL_SECONDS,
            ),
            Figure(
                "a producer that slept through plans: events lost", f"{missing}", "0", missing == 0
            ),
            Figure("until its events are through", f"{caught_up:.1f} s"),
        ],
    )


if __name__ == "__main__":
    by_hand(main)
