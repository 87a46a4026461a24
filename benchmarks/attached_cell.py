"""One cell of `benchmarks.attached`: a query on a local cluster, under one way to scale it.

Rows arrive by a trace that begins with a warm-up; every row takes a wait in Python. Latencies come
from the query's own progress, from the arrival of a row to the commit of its batch, and executors
are counted as processes: what one pays for. Nothing in the query knows that it is measured.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

import elastream
from benchmarks.command import described
from elastream.workloads import TRACES

Floats = NDArray[np.float64]

WARM_UP = 30.0
"""Six batches: enough for `attach` to know them, and for executors that are too many to go."""
START_AND_END = 15.0
"""How long a cell usually takes besides, in seconds."""
PART = (0.25, 0.875)
"""Of the trace: where to begin and to end."""
COUNT_SECONDS = 0.25
PATIENCE = 120.0
"""How long rows that wait at the end may take."""
PAIRS, STRETCH = 4, 20.0
"""To measure the overhead: pairs of stretches of this many seconds each, after one to settle."""
LEAN = 0.75
"""The share of all executors that `lean` asks for when all tasks of a batch wait."""
SCHEMA = "id long"
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k"


@dataclass(frozen=True)
class Setting:
    """What a cell runs."""

    kind: str
    """`max`, `mean`, `dynamic`, `lean`, `reactive`, `slots`, `attach` or `overhead`."""
    seconds: float = 270.0
    """How long the part of the trace is played; it is made faster or slower to fit."""
    trace: str = "spiky"
    trigger: float = 5.0
    per_row: float = 0.01
    peak: float = 0.65
    """The largest input, as a part of what all executors could do if batches cost nothing else."""
    most: int = 4
    """Executors, of one core each."""
    tasks: int = 16
    """Of a batch."""

    @classmethod
    def parsed(cls, text: str) -> Setting:
        """From JSON."""
        return cls(**json.loads(text))

    @property
    def lasts(self) -> float:
        """How long the cell takes on a quiet machine, in seconds."""
        runs = (2 * PAIRS + 1) * STRETCH if self.kind == "overhead" else WARM_UP + self.seconds
        return START_AND_END + runs

    @property
    def mean(self) -> int:
        """The fewest executors that could do all the work, if it came evenly."""
        return math.ceil(float(rates(self)[int(WARM_UP) :].mean()) * self.per_row)


@dataclass(frozen=True)
class Arrivals:
    """When rows arrive: the n-th, and how many there are by then."""

    begin: float
    """When the warm-up began, in seconds since 1970."""
    total: Floats
    """Rows by the end of every second, from the beginning of the warm-up."""

    def by(self, moment: float) -> int:
        """How many have arrived."""
        seconds = np.arange(len(self.total))
        return int(np.interp(moment - self.begin, seconds, self.total))

    def of(self, rows: Floats) -> Floats:
        """When these rows arrived."""
        when: Floats = np.interp(rows, self.total, np.arange(len(self.total)))
        return self.begin + when


def rates(setting: Setting) -> Floats:
    """Rows per second, the warm-up first."""
    whole = np.asarray(TRACES[setting.trace]().values)
    played = whole[int(PART[0] * len(whole)) : int(PART[1] * len(whole))]
    length = int(setting.seconds)
    places = (np.arange(length) + 0.5) / length * len(played) - 0.5
    shape = np.interp(places, np.arange(len(played)), played)
    shape *= setting.peak * setting.most / setting.per_row / shape.max()
    return np.concatenate([np.full(int(WARM_UP), shape[0]), shape])


class Rows(DataSource):
    """Rows that arrive by the trace, whether anybody reads them or not."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return "rows"

    def schema(self) -> str:
        """One number a row."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """One reader per query."""
        told = json.loads(Path(self.options["arrivals"]).read_text())
        arrivals = Arrivals(told["begin"], np.asarray(told["total"]))
        return RowsReader(arrivals, int(self.options["tasks"]))


class RowsReader(DataSourceStreamReader):
    """An offset is how many rows have arrived."""

    def __init__(self, arrivals: Arrivals, tasks: int) -> None:
        self._arrivals = arrivals
        self._tasks = tasks

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Before the first row."""
        return {"rows": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        """What has arrived by now."""
        return {"rows": self._arrivals.by(time.time())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Equal parts."""
        edges = np.linspace(start["rows"], end["rows"], self._tasks + 1).astype(int).tolist()
        return [InputPartition(pair) for pair in pairwise(edges) if pair[0] < pair[1]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        yield pa.RecordBatch.from_pydict({"id": range(*partition.value)})


def session(setting: Setting) -> SparkSession:
    """A standalone cluster of workers with one core each, on this machine."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master(f"local-cluster[{setting.most},1,512]")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config("spark.executor.extraJavaOptions", JAVA)
        .config("spark.driver.extraJavaOptions", JAVA)
    )
    if setting.kind in ("mean", "overhead"):
        builder = builder.config("spark.cores.max", str(setting.mean))
    if setting.kind in ("dynamic", "lean"):
        allocation = {
            "enabled": "true",
            "shuffleTracking.enabled": "true",
            "minExecutors": "1",
            "maxExecutors": str(setting.most),
            # Shorter than from batch to batch, and executors would go after every batch.
            "executorIdleTimeout": f"{2 * setting.trigger:g}s",
        }
        if setting.kind == "lean":
            # A batch has more tasks than there are cores: as many as this are asked for at once.
            ratio = LEAN * setting.most / setting.tasks
            allocation["executorAllocationRatio"] = f"{min(ratio, 1.0):g}"
        for name, value in allocation.items():
            builder = builder.config(f"spark.dynamicAllocation.{name}", value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


class Counter:
    """Counts the executors' processes, again and again."""

    def __init__(self, jvm: int) -> None:
        self._jvm = jvm
        self.times: list[float] = []
        self.counts: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Count no more."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(COUNT_SECONDS):
            self.times.append(time.time())
            self.counts.append(sum(map(_is_executor, _children(self._jvm))))


def _children(process: int) -> set[int]:
    found: set[int] = set()
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found.update(map(int, thread.read_text().split()))
        except OSError:
            continue
    return found


def _is_executor(process: int) -> bool:
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@contextmanager
def running(setting: Setting, flow: Floats) -> Iterator[tuple[SparkSession, Any, Arrivals]]:
    """The query, on executors that have worked before, with rows that arrive from now on."""
    per_row = setting.per_row

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(per_row * batch.num_rows)
            yield batch

    spark = session(setting)
    spark.dataSource.register(Rows)
    for _ in range(2):
        spark.range(0, 20 * setting.tasks, 1, setting.tasks).mapInArrow(work, SCHEMA).count()
    arrivals = Arrivals(time.time() + 1.0, np.concatenate([[0.0], np.cumsum(flow)]))
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "arrivals.json"
        told.write_text(json.dumps({"begin": arrivals.begin, "total": arrivals.total.tolist()}))
        frame = spark.readStream.format("rows").option("arrivals", str(told))
        frame = frame.option("tasks", setting.tasks).load()
        writer = frame.mapInArrow(work, SCHEMA).writeStream.format("noop")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        query = writer.trigger(processingTime=f"{setting.trigger:g} seconds").start()
        try:
            yield spark, query, arrivals
        finally:
            query.stop()
            spark.stop()


def measured(setting: Setting) -> dict[str, Any]:
    """Run the cell."""
    flow = rates(setting)
    with running(setting, flow) as (spark, query, arrivals):
        gateway: Any = spark.sparkContext._gateway
        counter = Counter(gateway.proc.pid)
        scaler = scaled(setting, query)
        time.sleep(max(arrivals.begin + len(flow) - time.time(), 0.0))
        # Rows that wait at the end count, too.
        patience = time.time() + PATIENCE
        while _committed(query) < arrivals.total[-1] - 1 and time.time() < patience:
            time.sleep(0.5)
        counter.stop()
        lead = scaler.status().lead_time if scaler else 0.0
        if scaler:
            scaler.stop()
        batches = [json.loads(progress.json) for progress in query.recentProgress]
    return {**summary(arrivals, batches, counter), "lead": lead, "rates": flow.tolist()}


def scaled(setting: Setting, query: Any) -> Any:
    """Whatever scales it, if anything does."""
    if setting.kind == "attach":
        return elastream.attach(query, executors=(1, setting.most))
    if setting.kind in ("reactive", "slots"):
        return elastream.attach(query, executors=(1, setting.most), policy=setting.kind, guards=())
    return None


def _committed(query: Any) -> int:
    last = query.lastProgress
    return int(json.loads(last.json)["sources"][0]["endOffset"]["rows"]) if last else 0


def summary(arrivals: Arrivals, batches: list[dict[str, Any]], counter: Counter) -> dict[str, Any]:
    """Executor-seconds, latencies and backlog after the warm-up, until the last row is done.

    Rows that are not done when the counter stops count with the latency that they have by then.
    """
    begin, stopped = arrivals.begin + WARM_UP, counter.times[-1]
    latencies, commits, backlog, done, end = [], [], 0.0, 0, begin
    for batch in batches:
        source = batch["sources"][0]
        first = (source["startOffset"] or {"rows": 0})["rows"]
        last = source["endOffset"]["rows"]
        began, took = _times(batch)
        commit = began + took
        if last == first:
            continue
        done, end = max(done, last), max(end, commit)
        backlog = max(backlog, arrivals.by(commit) - first) if commit > begin else backlog
        born = arrivals.of(np.arange(first, last) + 0.5)
        latencies.append((commit - born)[born >= begin])
        commits.append((commit - begin, commit - began, float((commit - born).max())))
    born = arrivals.of(np.arange(done, int(arrivals.total[-1])) + 0.5)
    late = (stopped - born)[born >= begin]
    every = np.concatenate([*latencies, late])
    end = stopped if len(late) else max(end, arrivals.begin + len(arrivals.total) - 1)
    times, counts = np.array(counter.times), np.array(counter.counts)
    within = (times >= begin) & (times <= end)
    return {
        "executor_seconds": float(counts[within].mean() * (end - begin)),
        "p50": float(np.quantile(every, 0.5)),
        "p99": float(np.quantile(every, 0.99)),
        "backlog": float(max(backlog, len(late))),
        "rows": len(every),
        "undone": len(late),
        "times": (times - begin)[::4].tolist(),
        "counts": counts[::4].tolist(),
        "commits": commits,
    }


def overhead(setting: Setting) -> dict[str, Any]:
    """How long batches take without and with an attached scaler, in turns, on fixed executors.

    Returns pairs of neighbouring stretches, each the median over its batches: what slows the
    machine for a while slows both. Which one comes first alternates.
    """
    setting = replace(setting, trigger=setting.trigger / 2)  # Twice as many batches.
    rate = setting.peak * setting.mean / setting.per_row
    stretches: list[tuple[float, float, bool]] = []
    with running(setting, np.full(int(2 * setting.lasts), rate)) as (_, query, _):
        # The first time loads what later ones have loaded.
        elastream.attach(query, executors=(1, setting.most), advice_only=True).stop()
        time.sleep(STRETCH)
        for place in range(2 * PAIRS):
            attached = place % 4 in (1, 2)
            begun = time.time()
            scaler = None
            if attached:
                scaler = elastream.attach(query, executors=(1, setting.most), advice_only=True)
            time.sleep(STRETCH)
            stretches.append((begun, time.time(), attached))
            if scaler:
                scaler.stop()
        batches = [json.loads(progress.json) for progress in query.recentProgress]
    return {"pairs": pairs(batches, stretches)}


def pairs(
    batches: Sequence[dict[str, Any]], stretches: Sequence[tuple[float, float, bool]]
) -> list[tuple[float, float]]:
    """Of every two stretches, the median of the batches within: not attached to, attached to."""
    medians: list[tuple[bool, float]] = []
    for begun, ended, attached in stretches:
        within = [
            seconds
            for began, seconds in map(_times, batches)
            if begun < began and began + seconds < ended
        ]
        medians.append((attached, float(np.median(within))))
    found = [dict(two) for two in zip(medians[::2], medians[1::2], strict=True)]
    return [(of[False], of[True]) for of in found]


def _times(batch: dict[str, Any]) -> tuple[float, float]:
    """When it began, in seconds since 1970, and how long it took."""
    began = datetime.fromisoformat(batch["timestamp"]).timestamp()
    return began, batch["durationMs"]["triggerExecution"] / 1000


if __name__ == "__main__":
    parser = described(__doc__)
    parser.add_argument("setting", type=Setting.parsed, help="JSON, as `benchmarks.attached` gives")
    asked = parser.parse_args().setting
    found = overhead(asked) if asked.kind == "overhead" else measured(asked)
    print(json.dumps({"setting": asdict(asked), **found}))
