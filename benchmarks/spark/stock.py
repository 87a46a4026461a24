"""The baselines: stock Structured Streaming, one query with the same Python functions.

| style | what it is |
| --- | --- |
| `chained` | as people mostly write it: one `mapInArrow` for every operator, default settings |
| `composed` | as an expert does: one function for all, so that Spark starts one Python process
  per task and not five; small Arrow batches; the quick checkpoint manager, on the raw file system |
| `real-time` | the expert's, with Spark's real-time trigger |

All end in Spark's `noop` sink: the last function notes how long every event took. A query runs in a
process of its own, as a session's Java options cannot change once it has started. It prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from benchmarks.command import described, positive
from benchmarks.spark.pipelines import change, events, pass_on, wait
from benchmarks.spark.processor_time import of_family
from benchmarks.spark.steady import Steady

OPERATORS = 4
Offset = dict[str, Any]
SCHEMA = "id long, text string, born double"
WARM_UP_SECONDS = 25.0
NOTE = ".note"
MOST_EVENTS = 2_500_000
"""In one batch: what comes faster than it is processed must not make batches grow for ever. The
more there are, the less each one costs: with 400,000, a flood was a quarter slower."""


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


Operators = Callable[[DataFrame, Callable[[pa.Table], pa.Table], str], DataFrame]


def note(table: pa.Table, folder: str) -> None:
    """Write down when events were done and how long they took: of many, a tenth."""
    now = time.time()
    took = now - table["born"].to_numpy()
    kept = took if len(took) <= 1_000 else took[::10]
    # A query that is stopped may end a task in the middle of writing.
    unfinished = Path(folder) / f"{uuid.uuid4().hex}.npy"
    np.save(unfinished, np.concatenate([[now, len(took)], kept]))
    unfinished.rename(unfinished.with_suffix(NOTE))


def chained(frame: DataFrame, function: Callable[[pa.Table], pa.Table], folder: str) -> DataFrame:
    """One function of Spark's for every operator."""

    def operator(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from function(pa.Table.from_batches([batch])).to_batches()

    def last(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = function(pa.Table.from_batches([batch]))
            note(table, folder)
            yield from table.to_batches()

    for _ in range(OPERATORS - 1):
        frame = frame.mapInArrow(operator, SCHEMA)
    return frame.mapInArrow(last, SCHEMA)


def composed(frame: DataFrame, function: Callable[[pa.Table], pa.Table], folder: str) -> DataFrame:
    """The same operators, one after the other in a single function of Spark's."""

    def all_of_them(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for _ in range(OPERATORS):
                table = function(table)
            note(table, folder)
            yield from table.to_batches()

    return frame.mapInArrow(all_of_them, SCHEMA)


FUNCTIONS = {"wait": wait, "pass": pass_on, "change": change}
STYLES: dict[str, Operators] = {"chained": chained, "composed": composed}
QUICK = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming"
    ".checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.metricsEnabled": "false",
}
SMALL_BATCHES = {"spark.sql.execution.arrow.maxRecordsPerBatch": "50"}
REAL_TIME = "5 seconds"
ANY_SINK = {"spark.sql.streaming.realTimeMode.allowlistCheck": "false"}
"""Without it, real-time mode refuses the `noop` sink before it looks at anything else."""


def steady(kind: str, style: str, rate: float, parallelism: int, seconds: float) -> Steady:
    """Run the query, and measure after the warm-up."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{parallelism}]")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if style != "chained":
        settings |= QUICK
        if kind == "wait":
            settings |= SMALL_BATCHES
    if style == "real-time":
        settings |= ANY_SINK
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(Due)
    reader = session.readStream.format("due").option("rate", str(rate))
    reader = reader.option("parallelism", str(parallelism))
    function = FUNCTIONS[kind]
    operators = STYLES.get(style, composed)
    with tempfile.TemporaryDirectory() as checkpoint, tempfile.TemporaryDirectory() as notes:
        frame = operators(reader.load(), function, notes)
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        if style == "real-time":
            writer = writer.outputMode("update").trigger(realTime=REAL_TIME)
        query = writer.start()
        while not any(Path(notes).glob(f"*{NOTE}")):
            query.awaitTermination(0.1)
        time.sleep(WARM_UP_SECONDS)
        cpu, begun = of_family(os.getpid()), time.time()
        time.sleep(seconds)
        # A batch that runs now had begun before: count up to the end of the next one.
        finished = query.lastProgress
        while query.lastProgress == finished and query.isActive:
            query.awaitTermination(0.05)
        ended = time.time()
        cpu = of_family(os.getpid()) - cpu
        query.stop()
        session.stop()
        noted = [np.load(file) for file in Path(notes).glob(f"*{NOTE}")]
    counted = [each for each in noted if begun <= each[0] <= ended]
    latencies = np.concatenate([each[2:] for each in counted])
    took = ended - begun
    return Steady(
        mean=float(latencies.mean()),
        p99=float(np.quantile(latencies, 0.99)),
        throughput=sum(each[1] for each in counted) / took,
        cores=cpu / took,
    )


def measured(kind: str, style: str, rate: float, parallelism: int, seconds: float = 20.0) -> Steady:
    """The same in a process of its own."""
    numbers = [str(rate), str(parallelism), str(seconds)]
    words = [sys.executable, "-m", __name__, kind, style, *numbers]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"stock {style} ended with {done.returncode}: {done.stderr[-2_000:]}")
    return Steady(**json.loads(done.stdout.splitlines()[-1]))


def real_time(rate: float, parallelism: int) -> str:
    """What comes of Spark's real-time mode: a latency, or why there is none."""
    words = [sys.executable, "-m", __name__, "wait", "real-time", str(rate), str(parallelism), "10"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=90, check=False)
    except subprocess.TimeoutExpired:
        return "nothing came out in 90 s"
    if done.returncode == 0:
        return f"{1e3 * Steady(**json.loads(done.stdout.splitlines()[-1])).mean:,.0f} ms mean"
    told = [line for line in done.stderr.splitlines() if "xception: [" in line]
    if not told:
        return f"it ended with {done.returncode}"
    return told[-1].rpartition("xception: ")[2].partition(" SQLSTATE")[0]


if __name__ == "__main__":
    parser = described(__doc__)
    parser.add_argument("kind", choices=FUNCTIONS)
    parser.add_argument("style", choices=[*STYLES, "real-time"])
    parser.add_argument("rate", type=float, help="events per second")
    parser.add_argument("parallelism", type=positive)
    parser.add_argument("seconds", type=float)
    print(json.dumps(asdict(steady(**vars(parser.parse_args())))))
