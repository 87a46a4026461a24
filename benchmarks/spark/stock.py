"""The baselines: stock Structured Streaming, one query with the same Python functions.

As people mostly write it, with one `mapInArrow` for every operator, and as an expert does: with the
functions composed in a single one, so that Spark starts one Python process per task and not five.
It runs in a process of its own, as a session's Java options cannot change once it has started:
`python -m benchmarks.spark.stock wait|pass chained|composed RATE PARALLELISM SECONDS` prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from benchmarks.spark.pipelines import events, pass_on, wait
from benchmarks.spark.processor_time import of_family
from benchmarks.spark.steady import Steady

OPERATORS = 4
Offset = dict[str, Any]
SCHEMA = "id long, text string, born double"
WARM_UP_SECONDS = 25.0
MOST_EVENTS = 400_000
"""In one batch: what comes faster than it is processed must not make batches grow for ever."""


class Due(DataSource):
    """Events that come at a rate; its options are the rate and the parallelism."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "due"

    def schema(self) -> str:
        """An event, and when it came."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DueReader:  # noqa: N802 - Spark's name
        """One reader per query."""
        return DueReader(float(self.options["rate"]), int(self.options["parallelism"]))


class DueReader(DataSourceStreamReader):
    """Offsets are a number of events, and when the first one came."""

    def __init__(self, rate: float, parallelism: int) -> None:
        self._rate = rate
        self._parallelism = parallelism

    def initialOffset(self) -> Offset:  # noqa: N802
        """Before the first event."""
        return {"events": 0, "start": None}

    def latestOffset(self, start: Offset, limit: Any = None) -> Offset:  # noqa: N802
        """What has come by now; a first few events warm Spark up, and then the clock starts."""
        if start["events"] == 0:
            return {"events": self._parallelism, "start": None}
        if start["start"] is None:
            start = {**start, "start": time.time() - start["events"] / self._rate}
        due = int((time.time() - start["start"]) * self._rate)
        events = max(min(due, start["events"] + MOST_EVENTS), start["events"])
        return {"events": events, "start": start["start"]}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Equal parts."""
        edges = np.linspace(start["events"], end["events"], self._parallelism + 1).astype(int)
        pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        begun = end["start"] or time.time()
        return [InputPartition((*pair, begun)) for pair in pairs if pair[0] < pair[1]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a part."""
        first, end, start = partition.value
        for begin in range(first, end, 10_000):
            table = events(begin, min(10_000, end - begin))
            born = start + table["id"].to_numpy() / self._rate
            yield from table.append_column("born", pa.array(born)).combine_chunks().to_batches()


def chained(frame: DataFrame, function: Callable[[pa.Table], pa.Table]) -> DataFrame:
    """The operators; the last one turns `born` into the time that an event took."""

    def operator(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from function(pa.Table.from_batches([batch])).to_batches()

    def last(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in operator(batches):
            took = time.time() - batch.column("born").to_numpy()
            place = batch.schema.get_field_index("born")
            yield batch.set_column(place, "born", pa.array(took))

    for _ in range(OPERATORS - 1):
        frame = frame.mapInArrow(operator, SCHEMA)
    return frame.mapInArrow(last, SCHEMA)


def composed(frame: DataFrame, function: Callable[[pa.Table], pa.Table]) -> DataFrame:
    """The same operators, one after the other in a single function of Spark's."""

    def all_of_them(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for _ in range(OPERATORS):
                table = function(table)
            took = pa.array(time.time() - table["born"].to_numpy())
            yield from table.set_column(table.column_names.index("born"), "born", took).to_batches()

    return frame.mapInArrow(all_of_them, SCHEMA)


STYLES = {"chained": chained, "composed": composed}


def steady(
    function: Callable[[pa.Table], pa.Table],
    style: str,
    rate: float,
    parallelism: int,
    seconds: float,
) -> Steady:
    """Run the query, and measure after the warm-up."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master(f"local[{parallelism}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(Due)
    taken: list[NDArray[np.float64]] = []

    def keep(frame: DataFrame, batch: int) -> None:
        taken.append(frame.select("born").toArrow()["born"].to_numpy())

    reader = session.readStream.format("due").option("rate", str(rate))
    reader = reader.option("parallelism", str(parallelism))
    with tempfile.TemporaryDirectory() as folder:
        writer = STYLES[style](reader.load(), function).writeStream.foreachBatch(keep)
        query = writer.option("checkpointLocation", folder).start()
        while len(taken) < 2:
            query.awaitTermination(0.1)
        time.sleep(WARM_UP_SECONDS)
        warm, cpu, begun = len(taken), of_family(os.getpid()), time.time()
        time.sleep(seconds)
        # A batch that ends now had begun before: count up to the end of the last one.
        batches = len(taken)
        while len(taken) == batches:
            query.awaitTermination(0.05)
        latencies = np.concatenate(taken[warm:])
        took, cpu = time.time() - begun, of_family(os.getpid()) - cpu
        query.stop()
    session.stop()
    return Steady(
        mean=float(latencies.mean()),
        p99=float(np.quantile(latencies, 0.99)),
        throughput=len(latencies) / took,
        cores=cpu / took,
    )


def measured(kind: str, style: str, rate: float, parallelism: int, seconds: float = 20.0) -> Steady:
    """The same in a process of its own."""
    numbers = [str(rate), str(parallelism), str(seconds)]
    words = [sys.executable, "-m", __name__, kind, style, *numbers]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return Steady(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    kind, style, *numbers = sys.argv[1:]
    function = {"wait": wait, "pass": pass_on}[kind]
    rate, parallelism, seconds = float(numbers[0]), int(numbers[1]), float(numbers[2])
    print(json.dumps(asdict(steady(function, style, rate, parallelism, seconds))))
