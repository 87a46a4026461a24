"""A replica dies after its store has committed, before the engine has: nothing is stored twice."""

import os
import signal
import sqlite3
import time
from contextlib import ExitStack, closing

import numpy as np
import pyarrow as pa
import pytest

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.driver.placement import Placement
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.sinks import Table
from support.local_pool import LocalPool
from support.waiting import eventually

EVENTS, DEATHS = 300, 2
"""Three deaths on the same events would put them into quarantine."""


def numbers(first, count):
    return pa.table({"id": np.arange(first, first + count)})


def deadly(folder):
    """A sink whose process is killed now and then, as soon as it has written something."""

    class Deadly(Table):
        def __call__(self, rows: list, context=None):
            rows = super().__call__(rows, context)
            with closing(sqlite3.connect(folder / "tried.db", timeout=60)) as tried, tried:
                tried.executemany("INSERT INTO tried VALUES (?)", [(row["id"],) for row in rows])
                (deaths,) = tried.execute("SELECT count(*) FROM deaths").fetchone()
                dies = deaths < DEATHS and rows[-1]["id"] > (deaths + 1) * EVENTS // (DEATHS + 2)
                if dies:
                    tried.execute("INSERT INTO deaths VALUES (1)")
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)
            return rows

    Deadly.__call__.__annotations__["context"] = Table.__call__.__annotations__["context"]
    return Deadly(folder / "store.db", "stored")


@pytest.mark.parametrize("grouping", ["shuffle", pytest.param("pull", marks=pytest.mark.long)])
def test_what_a_dead_replica_has_stored_is_not_stored_again(tmp_path, grouping):
    with closing(sqlite3.connect(tmp_path / "tried.db")) as tried:
        tried.execute("CREATE TABLE tried (id INTEGER)")
        tried.execute("CREATE TABLE deaths (n INTEGER)")
    pipeline = Pipeline("killed")
    sink = deadly(tmp_path)
    pipeline.add(sink, after=pipeline.source("in"), name="store", pool=2, grouping=grouping)
    trace = TraceSource(numbers, 1.0, np.full(2, EVENTS / 2))
    backend = SqliteBackend(tmp_path / "state")
    deployment = Deployment(pipeline.topology(), {"in": trace}, Options(), backend, frozenset())
    backend.prepare("killed", deployment.layout)
    with ExitStack() as stack:
        driver = stack.enter_context(backend.connect())
        number = driver.board.new_generation(deployment.members)
        pool = LocalPool(deployment, number)
        stack.callback(pool.close)
        stack.callback(driver.board.dismiss)
        eventually(lambda: len(driver.board.ready(number)) == len(deployment.members))
        driver.board.start(number)
        placement = Placement(
            deployment.topology, deployment.layout, driver.board, driver.ledger.lanes
        )
        placement.want({"store": 2})
        placement.review()

        def done():
            counts = driver.ledger.totals().counts
            return sum(of.processed for (name, _), of in counts.items() if name == "store")

        eventually(lambda: placement.review() or done() >= EVENTS)
        time.sleep(0.2)  # What comes twice may come late.
        assert list(driver.dead_letters.read()) == []
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        assert [n for (n,) in db.execute("SELECT id FROM stored ORDER BY id")] == list(
            range(EVENTS)
        )
    with closing(sqlite3.connect(tmp_path / "tried.db")) as db:
        (repeated,) = db.execute("SELECT count(*) - count(DISTINCT id) FROM tried").fetchone()
        assert repeated >= DEATHS, "the store was asked again for what it had stored"
