"""A pipeline with a backlog is stopped, its state is moved, and it goes on elsewhere."""

import sqlite3
import time
from contextlib import closing

import numpy as np
import pyarrow as pa
from typer.testing import CliRunner

from elastream.cli import app
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.dataframes.feeds import DataFrameSource
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.sinks import Table
from support.waiting import eventually

EACH = 400
"""So many events play a trace, and so many come from files."""


def started(session, folder, state):
    def numbers(first, count):
        return pa.table({"id": range(first, first + count)})

    def slowly(table):
        if not (folder / "hurry").exists():
            time.sleep(table.num_rows * 0.03)
        return table

    pipeline = Pipeline("moving")
    sources = [pipeline.source("trace"), pipeline.source("files")]
    pipeline.add(slowly, after=sources, pool=2, execution_time=0.004)
    pipeline.add(Table(folder / "store.db", "stored"), after="slowly", pool=2)
    frame = session.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    feeds = {
        "trace": TraceSource(numbers, 0.5, np.full(2, EACH / 1.0)),
        "files": DataFrameSource(frame.json(str(folder / "files"))),
    }
    return SparkEngine(pipeline.topology(), feeds, state, session)


def totals(engine):
    with engine.backend.connect() as connection:
        return connection.ledger.totals()


def stored(engine):
    counts = totals(engine).counts
    return sum(of.processed for (name, _), of in counts.items() if name == "stored")


def test_a_backlog_that_is_moved_goes_on_with_nothing_lost_and_nothing_twice(
    spark_session, tmp_path
):
    (tmp_path / "files").mkdir()
    for number in range(4):
        ids = range(EACH + number * EACH // 4, EACH + (number + 1) * EACH // 4)
        lines = "".join(f'{{"id": {n}}}\n' for n in ids)
        (tmp_path / "files" / f"{number}.json").write_text(lines)
    engine = started(spark_session, tmp_path, tmp_path / "old")
    with closing(engine):
        eventually(lambda: stored(engine) > 50 and totals(engine).waiting("slowly") > 50)
    file = tmp_path / "savepoint"
    for command in ("export", "import"):
        state = tmp_path / ("old" if command == "export" else "new")
        arguments = ["state", command, str(file), "--state", str(state)]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    shown = CliRunner().invoke(app, ["state", "show", str(tmp_path / "new")])
    assert "moving: " in shown.output
    (tmp_path / "hurry").touch()
    engine = started(spark_session, tmp_path, tmp_path / "new")
    with closing(engine):
        assert stored(engine) > 50, "what was counted moves along"
        eventually(lambda: stored(engine) == 2 * EACH)
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        found = [n for (n,) in db.execute("SELECT id FROM stored ORDER BY id")]
    assert found == list(range(2 * EACH))
