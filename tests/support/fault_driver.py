"""A driver that is made to be killed again and again: `python fault_driver.py FOLDER EVENTS STATE`.

Half of the events play a trace, half come from files through a streaming DataFrame. They have keys,
and every operator on the way to the end has the same. The output is written by Spark's own file
sink, and the last operator stores every event besides. Plans change every second. When all events
have been through and there is a file `last`, `done` is written and the driver ends.
"""

import os
import random
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from elastream.core.decision import Plan
from elastream.core.pipeline import Pipeline
from elastream.core.topology import Topology
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.dataframes.feeds import DataFrameSource
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.preflight import slots_for
from elastream.engines.spark.driver.session import new_session
from elastream.engines.spark.worker.trace_player import TraceSource

FILES = 25
RATE = 500
POOL = 2
KEYS = 40
PLAN_SECONDS = 1.0


def numbers(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": ids, "user": [number % KEYS for number in ids]})


def work(table: pa.Table) -> pa.Table:
    time.sleep(table.num_rows / 1000)
    return table.append_column("square", [[n * n for n in table["id"].to_pylist()]])


def audit(table: pa.Table) -> None:
    """See everything, whoever is free first."""


def topology(folder: Path) -> Topology:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(folder / "store.db", timeout=60, isolation_level=None)

    def store(table: pa.Table, db: sqlite3.Connection) -> pa.Table:
        rows = [(number,) for number in table["id"].to_pylist()]
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO tried (id) VALUES (?)", rows)
        db.executemany("INSERT OR IGNORE INTO stored VALUES (?)", rows)
        db.execute("COMMIT")
        return table

    pipeline = Pipeline("faults")
    sources = [pipeline.source("trace"), pipeline.source("files")]
    keyed = {"pool": POOL, "grouping": "key", "key": "user"}
    pipeline.add(work, after=sources, **keyed)
    pipeline.add(store, after=work, setup=connect, teardown=sqlite3.Connection.close, **keyed)
    pipeline.add(audit, after=work, pool=POOL, grouping="pull")
    return pipeline.topology()


def prepare(folder: Path, events: int) -> None:
    """What there must be before the first driver starts."""
    with sqlite3.connect(folder / "store.db") as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE stored (id INTEGER PRIMARY KEY)")
        db.execute("CREATE TABLE tried (number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER)")
    db.close()
    (folder / "files").mkdir()
    half = events // 2
    each = half // FILES
    for number in range(FILES):
        first = half + number * each
        lines = "".join(f'{{"id": {n}, "user": {n % KEYS}}}\n' for n in range(first, first + each))
        file = folder / "files" / f"{number:03}.json"
        file.write_text(lines)
        # Spark reads files in the order of their times, which would be the same for most of them.
        os.utime(file, (number, number))


def engine_of(
    session: SparkSession, folder: Path, running: Topology, events: int, state: str
) -> SparkEngine:
    frame = (
        session.readStream.schema("id long, user long")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder / "files"))
    )
    sources = {
        "trace": TraceSource(numbers, 1.0, np.full(events // 2 // RATE, float(RATE))),
        "files": DataFrameSource(frame),
    }
    outputs = {"store": "id long, user long, square long"}
    checkpoint = folder / "feeds" if state.startswith("kafka:") else None
    backend = open_backend(state, checkpoint)
    return SparkEngine(running, sources, backend, session, outputs=outputs)


def run(folder: Path, events: int, state: str) -> None:
    running = topology(folder)
    session = new_session(slots_for(running, feeds=1, outputs=1))
    engine = engine_of(session, folder, running, events, state)
    query = (
        engine.stream("store")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(str(folder / "out"))
    )
    choose = random.Random(0)
    emitted = 0.0
    while emitted < events or not (folder / "last").exists():
        engine.apply(Plan({name: choose.randint(1, POOL) for name in running.by_name}))
        time.sleep(PLAN_SECONDS)
        engine.observe()
        with engine.backend.connect() as connection:
            counts = connection.ledger.totals().counts
        emitted = sum(of.emitted for (name, _), of in counts.items() if name == "store")
    if not engine.drain(300):
        raise SystemExit("some events still wait")
    query.stop()
    found = session.read.parquet(str(folder / "out")).toPandas()
    found.to_csv(folder / "done.csv", index=False)
    engine.close()
    session.stop()
    (folder / "done").touch()


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
