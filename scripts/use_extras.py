"""Use something of every extra, where `elastream[all]` is installed.

    python scripts/use_extras.py FOLDER

There is no server of Kafka or PostgreSQL here: their clients are made, and find none.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import elastream
from elastream.errors import InvalidInputError

SAMPLES = [100 + 50 * math.sin(number / 8) for number in range(400)]


def demo(folder: Path) -> None:
    """VADER rates a text."""
    import pyarrow as pa

    from elastream.workloads.live.twitter.operators import load_lexicon, scores_of

    assert scores_of(pa.table({"content": ["wonderful"]}), load_lexicon())[0] > 0


def forecast(folder: Path) -> None:
    """A model of scikit-learn, and one of statsmodels."""
    for name in ("ann", "arima"):
        made = elastream.predictor(name).predict(SAMPLES, horizon=6)
        assert made.fallback is None, made.fallback
        assert len(made.values) == 6


def kafka(folder: Path) -> None:
    """A client of Kafka, for a broker that is not there."""
    from elastream.engines.spark.backends.kafka.clients import Place

    assert Place.parse("127.0.0.1:9/none").admin() is not None  # A client without work is false.


def plots(folder: Path) -> None:
    """A picture of a simulation."""
    run_elastream("simulate", "--trace", "step", "--out", str(folder))
    assert (folder / "simulation.png").stat().st_size > 10_000


def postgresql(folder: Path) -> None:
    """The driver of PostgreSQL finds no server."""
    from elastream.sinks.stores import PostgreSql

    with suppress(InvalidInputError):  # A missing driver would be a MissingExtraError.
        PostgreSql("postgresql://127.0.0.1:9/none?connect_timeout=2")


def serve_and_spark(folder: Path) -> None:
    """A pipeline on Spark, with its page."""
    pipeline = elastream.Pipeline("orders")
    orders = pipeline.source("orders")

    @pipeline.operator(after=orders, pool=1)
    def price(row: dict[str, int]) -> dict[str, float]:
        return {"total": 19.9 * row["pieces"]}

    batches = [[{"pieces": 1}, {"pieces": 2}]]
    run = elastream.run(pipeline, {"orders": batches}, state=folder / "state", serve="127.0.0.1:0")
    run.await_termination()
    assert run.url
    assert run.status().events_out == 2


def train(folder: Path) -> None:
    """A network that is trained for a moment."""
    rows = [f"{number},{value}" for number, value in enumerate(SAMPLES)]
    (folder / "rates.csv").write_text("\n".join(["time,value", *rows]))
    trained = folder / "rates.gru"
    arguments = "--model", "gru", "--window", "12", "--epochs", "1", "--out", str(trained)
    run_elastream("train", "--trace", str(folder / "rates.csv"), *arguments)
    assert len(elastream.predictor("gru", path=trained).predict(SAMPLES, horizon=6).values) == 6


EXTRAS: tuple[Callable[[Path], None], ...] = (
    demo, forecast, kafka, plots, postgresql, serve_and_spark, train,
)  # fmt: skip


def run_elastream(*arguments: str) -> None:
    """The command line of this environment."""
    command = [sys.executable, "-m", "elastream", *arguments]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    for extra in EXTRAS:
        extra(Path(sys.argv[1]))
        print(f"{extra.__name__.replace('_', ' ')}: works", flush=True)
