"""Four hops through a real broker: which way to carry events is the quickest, and stalls least.

`python -m benchmarks.kafka.hops` measures all ways in one run, on one broker that is warm.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from tests.support.kafka.broker import Cluster

from benchmarks.command import by_hand
from benchmarks.kafka import chain as transactions
from benchmarks.kafka import on_backend
from benchmarks.kafka.chain import Taken, Variant
from benchmarks.measure import Figure, report
from benchmarks.spark.processor_time import of_process
from elastream.engines.spark.backends import open_backend

TRANSACTIONS = "exactly-once, transactions of 2 producers in turn"
JOURNAL = "exactly-once, a journal (the backend as it is)"
MOST = 0.015
"""Seconds a hop may take at the median, exactly once."""
STALL = 0.25
"""Seconds without anything coming out, at 28 units per second and replica, that we call a stall."""

JOURNALS = (
    Variant(JOURNAL),
    Variant(f"{JOURNAL}, key over 32 lanes", keyed=True, lanes=32),
    Variant(f"{JOURNAL}, four replicas each", replicas=4, lanes=16, rate=14),
)
WARM_UP = Variant("warm-up", producers=2, seconds=20, warm_up=0)
VARIANTS = (
    Variant("at-least-once", exactly_once=False),
    Variant("exactly-once, positions as records, 1 producer"),
    Variant(TRANSACTIONS, producers=2),
    Variant("exactly-once, positions as a group's offsets, 1 producer", positions="offsets"),
    Variant(f"{TRANSACTIONS}, key over 32 lanes", producers=2, keyed=True, gather=0.005, lanes=32),
    Variant(
        "at-least-once, key over 32 lanes", exactly_once=False, keyed=True, gather=0.005, lanes=32
    ),
    Variant(f"{TRANSACTIONS}, four replicas each", producers=2, replicas=4, lanes=16, rate=14),
)


@dataclass(frozen=True)
class Result:
    """What a variant came to, in seconds."""

    p50: float
    p99: float
    end_to_end: float
    stalls: int
    longest: float
    """The longest time without anything coming out."""
    units: float
    """Per second, at the end of the line."""
    cpu: float
    """Processor time of a replica per unit and hop."""
    broker: float
    """Cores that the broker was busy with."""


def measured(cluster: Cluster, variant: Variant, name: str) -> Result:
    """Run it, and sum it up."""
    (broker,) = cluster.brokers
    assert broker.process is not None
    start, used = time.monotonic(), of_process(broker.process.pid)
    if variant in JOURNALS:
        state = f"kafka:{cluster.address}/{name}"
        taken = on_backend.run(state, variant, name)
        open_backend(state).remove()
    else:
        taken = transactions.run(cluster.address, variant, name)
    cores = (of_process(broker.process.pid) - used) / (time.monotonic() - start)
    last = [each for each in taken if each.hop == variant.hops]
    gaps = [later - sooner for sooner, later in pairwise(sorted(_all(last, "times")))]
    hops, ages = _all(taken, "hops"), _all(last, "ages")
    return Result(
        p50=float(np.median(hops)),
        p99=float(np.quantile(hops, 0.99)),
        end_to_end=float(np.median(ages)),
        stalls=sum(gap > STALL for gap in gaps),
        longest=max(gaps),
        units=len(ages) / variant.seconds,
        cpu=sum(each.cpu for each in taken) / len(hops),
        broker=cores,
    )


def main() -> bool:
    """Measure every variant; whether the one that the backend is built on met its target."""
    figures = []
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder) / "kafka") as cluster:
        transactions.run(cluster.address, WARM_UP, "warm-up")
        for number, variant in enumerate((*VARIANTS, *JOURNALS)):
            figures.append(_figure(variant, measured(cluster, variant, f"hops-{number}")))
    return report("Four hops through Kafka, units of 18 events", figures)


def _figure(variant: Variant, result: Result) -> Figure:
    text = (
        f"p50 {result.p50 * 1e3:.1f} ms, p99 {result.p99 * 1e3:.0f} ms a hop; "
        f"{result.end_to_end * 1e3:.0f} ms in all; {result.stalls} stalls, "
        f"longest gap {result.longest * 1e3:.0f} ms; {result.units:.0f} units/s; "
        f"{result.cpu * 1e3:.1f} ms CPU a unit and hop, broker {result.broker:.2f} cores"
    )
    if variant.name != JOURNAL:
        return Figure(variant.name, text)
    return Figure(variant.name, text, f"p50 {MOST * 1e3:.0f} ms", result.p50 <= MOST)


def _all(taken: list[Taken], what: str) -> list[float]:
    return [value for each in taken for value in getattr(each, what)]


if __name__ == "__main__":
    by_hand(main)
