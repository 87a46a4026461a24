"""What a state on Kafka costs: beside SQLite, and beside stock Structured Streaming over Kafka.

Four operators run on either state, and the same functions, composed by hand, in a stock query from
one topic to another: of 1 ms each at 2,000 events/s, and without work under a flood. Either takes
about three minutes on a machine that does nothing else, and says what it does.

What executors that follow the load save is measured by `python -m benchmarks.levels`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.kafka.broker import Cluster

from benchmarks.command import by_hand
from benchmarks.kafka import stock
from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import line, pass_on, wait
from benchmarks.spark.steady import Steady, steady
from elastream import Topology
from elastream.engines.spark.driver.session import new_session

OPERATORS, REPLICAS = 4, 4
RATE, FLOOD = 2_000.0, 200_000.0
MEAN_SECONDS, SHARE_OF_STOCK = 0.2, 0.25
WARM_UP = "Kafka, warming up"
SQLITE, KAFKA, STOCK = "SQLite", "Kafka, exactly once", "stock, composed, from Kafka to Kafka"


def main(*names: str) -> bool:
    """Print those of these names, or all; returns whether every target was met."""
    met = [PARTS[name]() for name in names or PARTS]
    return all(met)


def latency() -> bool:
    """How long events take that come at a rate which all can keep up with."""
    found = _measured(line(OPERATORS, REPLICAS, wait), "wait", RATE, OPERATORS * REPLICAS)
    share = found[KAFKA].mean / found[STOCK].mean
    return report(
        f"Kafka: {OPERATORS} operators of 1 ms, {RATE:,.0f} events/s",
        [
            Figure(f"{SQLITE}: mean, p99", _both(found[SQLITE])),
            Figure(
                f"{KAFKA}: mean, p99",
                _both(found[KAFKA]),
                f"{1e3 * MEAN_SECONDS:.0f} ms mean",
                found[KAFKA].mean <= MEAN_SECONDS,
            ),
            Figure(f"{STOCK}: mean, p99", _both(found[STOCK]), baseline=True),
            Figure(
                "our mean by stock's",
                f"{share:.2f}",
                f"{SHARE_OF_STOCK:.2f}",
                share <= SHARE_OF_STOCK,
            ),
        ],
    )


def throughput() -> bool:
    """How many events get through that come faster than anybody can process them."""
    found = _measured(line(OPERATORS, 1, pass_on), "pass", FLOOD, 2)
    return report(
        f"Kafka: {OPERATORS} operators that pass events on, {FLOOD:,.0f} events/s",
        [Figure(name, f"{of.throughput:,.0f}/s") for name, of in found.items()],
    )


def _measured(pipeline: Topology, kind: str, rate: float, parallelism: int) -> dict[str, Steady]:
    """The pipeline on either state, and the same functions in a stock query."""
    found: dict[str, Steady] = {}
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder) / "kafka") as cluster:
        session = new_session(2 * (sum(each.pool for each in pipeline.operators) + 2) + 2)
        on_kafka = f"kafka:{cluster.address}/{kind}"
        # A broker is slow until it has run for a while, and its code is compiled.
        states = {SQLITE: None, WARM_UP: f"{on_kafka}-first", KAFKA: on_kafka}
        for name, state in states.items():
            with telling(f"{name}, {rate:,.0f} events/s"):
                found[name] = steady(pipeline, rate, session, state=state)
        del found[WARM_UP]
        session.stop()
        with telling(f"{STOCK}, {rate:,.0f} events/s"):
            found[STOCK] = stock.measured(cluster.address, kind, rate, parallelism)
    return found


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Say what is measured now, and how long it took."""
    began = time.monotonic()
    print(f"{what} ...", file=sys.stderr, flush=True)
    yield
    print(f"{what}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _both(of: Steady) -> str:
    return f"{1e3 * of.mean:,.0f}, {1e3 * of.p99:,.0f} ms"


PARTS: dict[str, Callable[[], bool]] = {"latency": latency, "throughput": throughput}


if __name__ == "__main__":
    by_hand(main, PARTS)
