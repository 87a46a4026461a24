"""Two levels: what a cluster costs when executors follow the load, too.

`python -m benchmarks.levels` plays a slow spike to four operators that take 50, 100, 75 and 25 ms,
on a real standalone cluster of this machine, three times: with all executors and all replicas; with
all executors, and replicas that follow the load; and with both levels.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.support.spark_cluster import StandaloneCluster

from benchmarks.command import described, positive
from benchmarks.measure import Figure, report

EXECUTORS, SLOTS = 4, 6
BASE, PEAK = 5.0, 50.0
QUIET, RISE, TOP, FALL = 60, 60, 20, 40
"""How long a stretch of the trace lasts, in seconds. An executor takes up to 10 s to come on a
machine with two cores: what is quicker than that is a matter for replicas."""
OBJECTIVE_MS = 500
SHARE, WITHIN = 0.7, 1.5
PIPELINE = """
import time

import pyarrow as pa

from elastream import Pipeline

pipeline = Pipeline("unequal")
after = pipeline.source("numbers")


def taking(seconds):
    def work(rows: list) -> list:
        time.sleep(seconds * len(rows))
        return rows

    return work


for name, seconds, pool in (
    ("parse", 0.05, 4), ("model", 0.1, 8), ("check", 0.075, 6), ("store", 0.025, 2)
):
    after = pipeline.add(taking(seconds), after=after, name=name, pool=pool)

sources = {"numbers": lambda first, count: pa.table({"n": range(first, first + count)})}
"""
WAYS = {
    "fixed maximum": ("--policy", "static", "--replicas", "8"),
    "replicas only": ("--objective-ms", str(OBJECTIVE_MS)),
    "both levels": ("--objective-ms", str(OBJECTIVE_MS), "--executors", f"1:{EXECUTORS}"),
}


@dataclass(frozen=True)
class Measured:
    """One run."""

    executor_seconds: float
    replica_seconds: float
    p99: float
    """Latency, in milliseconds."""
    processed: float
    """The share of events that reached the end."""


def main(spikes: int = 1) -> bool:
    """Print the three side by side."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "mine.py").write_text(PIPELINE)
        rates = trace(spikes)
        lines = [f"{second},{rate:g}\n" for second, rate in enumerate(rates)]
        (here / "trace.csv").write_text("time,value\n" + "".join(lines))
        with StandaloneCluster(here / "cluster", EXECUTORS, SLOTS) as cluster:
            found = {name: measured(here, cluster.master, name) for name in WAYS}
    fixed, both = found["fixed maximum"], found["both levels"]
    share, longer = both.executor_seconds / fixed.executor_seconds, both.p99 / fixed.p99
    return report(
        f"slow spikes: {spikes}, on {EXECUTORS} executors with {SLOTS} task slots each",
        [
            *(_figure(name, of) for name, of in found.items()),
            Figure(
                "executor-seconds of both levels", f"{share:.0%}", f"{SHARE:.0%}", share <= SHARE
            ),
            Figure(
                "p99 of both levels", f"{longer:.2f} times", f"{WITHIN} times", longer <= WITHIN
            ),
        ],
    )


def trace(spikes: int) -> list[float]:
    """Events per second, second by second."""
    up, down = np.linspace(BASE, PEAK, RISE), np.linspace(PEAK, BASE, FALL)
    spike = [*[BASE] * QUIET, *up, *[PEAK] * TOP, *down]
    return [*spike * spikes, *[BASE] * (QUIET // 2)]


def measured(folder: Path, master: str, way: str) -> Measured:
    """Let a run of the command line play the trace."""
    words = [sys.executable, "-m", "elastream", "run", f"{folder}/mine.py:pipeline", "--json"]
    settings = {"spark.executor.cores": str(SLOTS), "spark.executor.memory": "512m"}
    words += ["--trace", str(folder / "trace.csv"), "--master", master]
    words += [word for item in settings.items() for word in ("--conf", "=".join(item))]
    words += ["--state", str(folder / way.replace(" ", "-")), *WAYS[way]]
    with (folder / f"{way}.log").open("w") as log:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=log, text=True, check=False)
    if done.returncode:
        raise RuntimeError((folder / f"{way}.log").read_text()[-3_000:])
    values = json.loads(done.stdout)
    return Measured(
        values["executor_seconds"],
        values["replica_seconds"],
        values["latency_ms"]["p99"],
        values["processed_ratio"],
    )


def _figure(name: str, of: Measured) -> Figure:
    return Figure(
        f"{name}: executor-seconds, replica-seconds, processed, p99",
        f"{of.executor_seconds:,.0f}, {of.replica_seconds:,.0f}, {of.processed:.1%}, "
        f"{of.p99:,.0f} ms",
    )


if __name__ == "__main__":
    parser = described(__doc__)
    parser.add_argument("spikes", type=positive, nargs="?", default=1, help="one by default")
    raise SystemExit(not main(parser.parse_args().spikes))
