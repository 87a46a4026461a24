"""Functions that kill or hang, and a drain over the end of a generation: with real processes."""

import os
import signal
import sqlite3
import time
from contextlib import ExitStack, closing

import numpy as np
import pyarrow as pa
import pytest

from elastream.core.health import State
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.driver import statistics
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.sinks import Table
from support.waiting import eventually
from support.workers import rows_of

pytestmark = pytest.mark.long

PATIENCE = 240.0
BAD = 70


def numbered(rate, seconds):
    def make(first, count):
        return pa.table({"id": range(first, first + count)})

    return TraceSource(make, 1.0, np.full(seconds, float(rate)))


@pytest.fixture
def started(spark_session, tmp_path):
    """A function that starts an operator, whose output is stored, on Spark."""
    with ExitStack() as engines:

        def start(function, source, pool=2, generation=600.0, **settings):
            pipeline = Pipeline("faults")
            pipeline.add(function, after=pipeline.source("in"), name="work", pool=pool, **settings)
            # Without a key: what came twice would be there twice.
            pipeline.add(Table(tmp_path / "out.db", "stored"), after="work")
            engine = SparkEngine(
                pipeline.topology(),
                {"in": source},
                tmp_path / "state",
                spark_session,
                generation=generation,
            )
            engines.callback(engine.close)
            return engine

        yield start


def stored(folder):
    with closing(sqlite3.connect(folder / "out.db")) as db:
        try:
            return [number for (number,) in db.execute("SELECT id FROM stored ORDER BY id")]
        except sqlite3.OperationalError:
            return []  # Nothing has come yet.


def dead_letters(engine):
    with engine.backend.connect() as connection:
        return list(connection.dead_letters.read())


def all_but(bad, count):
    return [number for number in range(count) if number != bad]


def test_an_event_that_kills_processes_is_set_aside_and_all_others_get_through(started, tmp_path):
    def deadly(rows: list, bad=BAD):
        if any(row["id"] == bad for row in rows):
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    engine = started(deadly, numbered(100, 3))
    eventually(lambda: dead_letters(engine), PATIENCE)
    eventually(lambda: len(stored(tmp_path)) >= 299, PATIENCE)
    (letter,) = dead_letters(engine)
    assert (letter.operator, letter.error) == ("work", "the process died (SIGKILL)")
    assert rows_of(letter) == [{"id": BAD}]
    engine.close()
    assert stored(tmp_path) == all_but(BAD, 300)


def test_a_function_that_hangs_is_ended_and_its_event_set_aside(started, tmp_path):
    def hangs(rows: list, bad=BAD):
        if any(row["id"] == bad for row in rows):
            time.sleep(3600)
        return rows

    engine = started(hangs, numbered(100, 3), timeout=3.0)
    eventually(lambda: dead_letters(engine), PATIENCE)
    eventually(lambda: len(stored(tmp_path)) >= 299, PATIENCE)
    (letter,) = dead_letters(engine)
    assert (letter.operator, letter.error) == ("work", "it took longer than 3 s")
    assert rows_of(letter) == [{"id": BAD}]
    engine.close()
    assert stored(tmp_path) == all_but(BAD, 300)


def test_a_function_that_hangs_without_a_time_limit_is_told(started, tmp_path, monkeypatch):
    monkeypatch.setattr(statistics, "STALLED_UNITS", 0.0)
    monkeypatch.setattr("elastream.engines.spark.driver.condition.STALLED_SECONDS", 2.0)
    way_out = tmp_path / "way out"

    def hangs(rows: list, bad=BAD):
        while any(row["id"] == bad for row in rows) and not way_out.exists():
            time.sleep(0.05)
        return rows

    engine = started(hangs, numbered(100, 3))
    windows = []
    engine.watch(windows.append)
    degraded = eventually(
        lambda: engine.health().state is State.DEGRADED and engine.health(), PATIENCE
    )
    assert "has been busy with one unit for" in degraded.why
    assert degraded.why.startswith("replica work/")
    eventually(lambda: windows[-1].operators["work"].stalled)
    way_out.touch()
    eventually(lambda: engine.health().state is State.RUNNING, PATIENCE)
    eventually(lambda: stored(tmp_path) == list(range(300)), PATIENCE)


def test_drained_is_drained_also_over_the_end_of_a_generation(started, tmp_path):
    def slow(rows: list):
        time.sleep(0.02 * len(rows))
        return rows

    def generation():
        with engine.backend.connect() as connection:
            return max(of.generation for of in connection.board.members().values())

    def emitted():
        with engine.backend.connect() as connection:
            return connection.ledger.totals().counts["in", 0].emitted

    def waiting():
        with engine.backend.connect() as connection:
            return connection.ledger.totals().waiting("work")

    engine = started(slow, numbered(200, 600), pool=1, generation=4.0)
    eventually(lambda: waiting() > 500, PATIENCE)
    before = generation()
    assert engine.drain(PATIENCE)
    assert generation() > before, "the drain must last longer than a generation"
    inside = emitted()
    later = generation()
    eventually(lambda: generation() > later, PATIENCE)
    time.sleep(1.0)
    assert emitted() == inside, "nothing is let in again"
    engine.close()
    assert stored(tmp_path) == list(range(inside))
