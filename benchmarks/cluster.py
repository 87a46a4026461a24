"""What a state on Kafka costs: beside SQLite, and beside stock Structured Streaming over Kafka.

`python -m benchmarks.cluster` runs four operators of 1 ms at 2,000 events/s on either state, and
the same functions, composed by hand, in a stock query from one topic to another.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.support.kafka.broker import Cluster

from benchmarks.kafka import stock
from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import line, pass_on, wait
from benchmarks.spark.steady import Steady, steady
from elastream.engines.spark.driver.session import new_session

OPERATORS, REPLICAS = 4, 4
RATE, FLOOD = 2_000.0, 200_000.0
MEAN_SECONDS, SHARE_OF_STOCK = 0.2, 0.25


def main() -> bool:
    """Print them side by side."""
    session = new_session(2 * (OPERATORS * REPLICAS + 2) + 2)
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder) / "kafka") as cluster:
        states = {"SQLite": None, "Kafka, exactly once": f"kafka:{cluster.address}/"}
        ours: dict[str, Steady] = {}
        floods: dict[str, Steady] = {}
        for name, state in states.items():
            at_rest = None if state is None else f"{state}rate"
            flooded = None if state is None else f"{state}flood"
            ours[name] = steady(line(OPERATORS, REPLICAS, wait), RATE, session, state=at_rest)
            floods[name] = steady(line(OPERATORS, 1, pass_on), FLOOD, session, state=flooded)
        session.stop()
        theirs = stock.measured(cluster.address, "wait", RATE, OPERATORS * REPLICAS)
        their_flood = stock.measured(cluster.address, "pass", FLOOD, 2)
    share = ours["Kafka, exactly once"].mean / theirs.mean
    mean = ours["Kafka, exactly once"].mean
    return report(
        f"Kafka: {OPERATORS} operators of 1 ms, {RATE:,.0f} events/s",
        [
            *(_latency(name, of) for name, of in ours.items() if name == "SQLite"),
            Figure(
                "Kafka, exactly once: mean, p99",
                _both(ours["Kafka, exactly once"]),
                f"{1e3 * MEAN_SECONDS:.0f} ms mean",
                mean <= MEAN_SECONDS,
            ),
            _latency("stock, composed, from Kafka to Kafka", theirs),
            Figure(
                "our mean by stock's",
                f"{share:.2f}",
                f"{SHARE_OF_STOCK:.2f}",
                share <= SHARE_OF_STOCK,
            ),
            *(_throughput(name, of) for name, of in floods.items()),
            _throughput("stock, composed, from Kafka to Kafka", their_flood),
        ],
    )


def _both(of: Steady) -> str:
    return f"{1e3 * of.mean:,.0f}, {1e3 * of.p99:,.0f} ms"


def _latency(name: str, of: Steady) -> Figure:
    return Figure(f"{name}: mean, p99", _both(of))


def _throughput(name: str, of: Steady) -> Figure:
    return Figure(f"passing events on, {name}", f"{of.throughput:,.0f}/s")


if __name__ == "__main__":
    raise SystemExit(not main())
