"""What the engine does when nothing changes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from pyspark.sql import SparkSession

from benchmarks.spark.pipelines import all_active, running
from benchmarks.spark.processor_time import of_family, of_process
from elastream import Topology


@dataclass(frozen=True)
class Steady:
    """A while of steady work."""

    mean: float
    """Latency, in seconds."""
    p99: float
    throughput: float
    """Events per second at the end of the line."""
    cores: float
    """Processor time per second, of everything that Spark and the engine run."""
    replicas: float | None = None
    """That of the operators' replicas among it; where they are processes of their own."""


def steady(
    topology: Topology,
    rate: float,
    session: SparkSession,
    *,
    state: str | None = None,
    warm_up: float = 8.0,
    seconds: float = 15.0,
) -> Steady:
    """Let it run with all replicas active, and measure after the warm-up."""
    with running(topology, rate, session, state) as run:
        effective = run.engine.topology
        run.engine.apply(all_active(effective))
        time.sleep(warm_up)
        run.engine.observe()
        operators = [p for (name, _), p in run.processes().items() if name in effective.by_name]
        cpu, replicas = of_family(os.getpid()), sum(map(of_process, operators))
        time.sleep(seconds)
        stats = run.engine.observe()
        cpu = of_family(os.getpid()) - cpu
        replicas = sum(map(of_process, operators)) - replicas
    assert stats.latency is not None
    return Steady(
        mean=stats.latency.mean,
        p99=stats.latency.p99,
        throughput=stats.operators[effective.operators[-1].name].processed / stats.duration,
        cores=cpu / stats.duration,
        replicas=replicas / stats.duration,
    )
