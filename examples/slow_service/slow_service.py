"""Ask a slow HTTP service about every order, with as many replicas as the orders need.

    python examples/slow_service/slow_service.py

It starts the service itself, runs the same orders three times (elastic, fixed for the peak, fixed
for the mean), and draws `slow_service.png` next to this file. It takes about 90 seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow as pa

import elastream

HERE = Path(__file__).parent
POOL = 12
SECONDS_PER_CALL = 0.03
RATES = "spiky"


class Lookup:
    """Adds a customer's city. Every replica keeps one connection open and waits for each answer."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._service: HTTPConnection | None = None

    def setup(self) -> None:
        """Runs once in every replica."""
        self._service = HTTPConnection("127.0.0.1", self._port, timeout=10)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Look up one order; an error sets the order aside, and the others continue."""
        assert self._service is not None
        self._service.request("GET", f"/city?customer={row['customer']}")
        answer = self._service.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"the service answered {answer.status}")
        return {**row, **json.loads(body)}

    def close(self) -> None:
        """Runs once, when the replica ends."""
        if self._service is not None:
            self._service.close()


def make_orders(first: int, count: int) -> pa.Table:
    """The orders with these numbers; the same numbers always give the same orders."""
    numbers = range(first, first + count)
    return pa.table({"id": numbers, "customer": [7 * number % 1_000 for number in numbers]})


def with_service(port: int) -> elastream.Pipeline:
    """Orders, their city, and what it costs to send them there."""
    pipeline = elastream.Pipeline("orders")
    orders = pipeline.source("orders")
    pipeline.add(
        Lookup(port), name="lookup", after=orders, pool=POOL, execution_time=SECONDS_PER_CALL
    )

    @pipeline.operator(after="lookup", pool=1)
    def postage(rows: list) -> list:
        return [{**row, "postage": 4.9 if row["city"] == "Lyon" else 9.9} for row in rows]

    return pipeline


@contextmanager
def service() -> Iterator[int]:
    """Run the service in a separate process; yields its port."""
    started = subprocess.Popen(
        [sys.executable, str(HERE / "service.py")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert started.stdout is not None
        yield int(started.stdout.readline())
    finally:
        started.terminate()
        started.communicate()


def run(port: int, policy: Any, seconds: float, **settings: Any) -> elastream.PipelineRun:
    """Play the orders once under a policy."""
    load = elastream.replay(make_orders, RATES, speed=1_301 / seconds, scale=0.045)
    with tempfile.TemporaryDirectory() as scratch:
        going = elastream.run(
            with_service(port), {"orders": load}, state=scratch, policy=policy, td=0.25, **settings
        )
        going.await_termination()
        return going


def measured(going: elastream.PipelineRun) -> dict[str, float]:
    """What a run cost, and how long orders took."""
    stats = [cycle.stats for cycle in going.recent(1_000) if cycle.stats]
    ended = [each.latency for each in stats if each.latency]
    orders = sum(each.count for each in ended)
    return {
        "orders": going.status().events_out,
        "replica-seconds": sum(each.duration * each.operators["lookup"].costing for each in stats),
        "mean ms": 1_000 * sum(each.mean * each.count for each in ended) / orders,
        "p99 of the worst interval, ms": 1_000 * max(each.p99 for each in ended),
    }


def calls_at_once(rate: float) -> int:
    """How many replicas are 85 % busy with this many orders a second."""
    return min(ceil(rate * SECONDS_PER_CALL / 0.85), POOL)


def compare(seconds: float = 20.0, **settings: Any) -> dict[str, elastream.PipelineRun]:
    """The same orders under three policies, one after the other."""
    rates = elastream.trace(RATES, speed=1_301 / seconds, scale=0.045).rates
    policies = {
        "elastic": elastream.slo("250 ms"),
        "fixed, for the peak": elastream.policy("static", replicas=calls_at_once(rates.max())),
        "fixed, for the mean": elastream.policy("static", replicas=calls_at_once(rates.mean())),
    }
    with service() as port:
        if "session" not in settings:
            settings["session"] = elastream.session(with_service(port))
        return {name: run(port, each, seconds, **settings) for name, each in policies.items()}


def draw(runs: dict[str, elastream.PipelineRun], target: Path) -> Path:
    """Orders, replicas and latency of all runs over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    orders, replicas, latency = figure.subplots(3, 1, sharex=True)
    for name, going in runs.items():
        cycles = [cycle for cycle in going.recent(1_000) if cycle.stats]
        ends = [cycle.time for cycle in cycles]
        rate = [cycle.stats.input / cycle.stats.duration for cycle in cycles]
        active = [cycle.stats.operators["lookup"].active for cycle in cycles]
        p99 = [1_000 * c.stats.latency.p99 if c.stats.latency else float("nan") for c in cycles]
        if name == "elastic":
            orders.plot(ends, rate, color="0.5")
        replicas.step(ends, active, where="pre", label=name)
        latency.plot(ends, p99, label=name)
    orders.set_title("orders per second", loc="left", fontsize=10)
    replicas.set_title("active replicas of 'lookup'", loc="left", fontsize=10)
    latency.set_title("latency, p99 (ms)", loc="left", fontsize=10)
    latency.set_yscale("log")
    latency.set_xlabel("seconds")
    replicas.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    for axes in (orders, replicas):
        axes.set_ylim(bottom=0)
    figure.savefig(target, dpi=110)
    return target


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    results = compare()
    figures = {name: measured(going) for name, going in results.items()}
    columns = list(figures["elastic"])
    print(" " * 22 + "".join(f"{column:>31}" for column in columns))
    for name, row in figures.items():
        print(f"{name:22}" + "".join(f"{row[column]:>31,.0f}" for column in columns))
    elastic, peak = (figures[name]["replica-seconds"] for name in list(figures)[:2])
    saved = 1 - elastic / peak
    print(f"elastic needs {saved:.0%} fewer replica-seconds than fixed for the peak")
    print(f"picture: {draw(results, out / 'slow_service.png')}")
