import os
import random
import signal
import sqlite3
import time
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from elastream.core.chains import Chains
from elastream.core.decision import Plan
from elastream.core.health import RUNNING, State
from elastream.core.pipeline import Pipeline
from elastream.engines.clocks import WallClock
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.driver import engine as engine_module
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.preflight import slots_for
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.errors import EngineError, InvalidInputError
from support.small_disk import fill, small_disk
from support.waiting import eventually

PATIENCE = 180.0
"""Generations may take long to start where others work, too."""


def numbered(rate, seconds):
    """A source of events with the numbers 0, 1, 2, ..."""

    def make(first, count):
        return pa.table({"id": range(first, first + count)})

    return TraceSource(make, 1.0, np.full(seconds, float(rate)))


def storing(path, grouping="shuffle", pool=3, **settings):
    """Two operators, the second of which keeps every number in a table."""

    def work(table):
        return table.append_column("square", [[n * n for n in table["id"].to_pylist()]])

    def connect():
        db = sqlite3.connect(path, timeout=30, isolation_level=None)
        db.execute("CREATE TABLE IF NOT EXISTS stored (id INTEGER PRIMARY KEY, square INTEGER)")
        return db

    def store(table, db):
        rows = [(row["id"], row["square"]) for row in table.to_pylist()]
        db.executemany("INSERT OR IGNORE INTO stored VALUES (?, ?)", rows)

    pipeline = Pipeline("storing")
    pipeline.add(
        work,
        after=pipeline.source("in"),
        pool=pool,
        grouping=grouping,
        execution_time=0.001,
        **settings,
    )
    pipeline.add(
        store,
        after="work",
        pool=pool,
        grouping="load-aware",
        execution_time=0.001,
        setup=connect,
        teardown=sqlite3.Connection.close,
    )
    return pipeline.topology()


def stored(path):
    with sqlite3.connect(path) as db:
        found = [number for (number,) in db.execute("SELECT id FROM stored ORDER BY id")]
    db.close()
    return found


def totals(engine):
    with engine.backend.connect() as connection:
        return connection.ledger.totals()


def processed(engine, operator="store"):
    counts = totals(engine).counts
    return sum(of.processed for (name, _), of in counts.items() if name == operator)


def members(engine):
    with engine.backend.connect() as connection:
        return connection.board.members()


def processes(engine):
    return {name: attendance.process for name, attendance in members(engine).items()}


def failures(engine):
    with engine.backend.connect() as connection:
        return connection.board.failures()


@pytest.fixture
def started(spark_session):
    """A function that starts an engine, which is closed at the end, however the test ends."""
    with ExitStack() as engines:

        def start(topology, sources, state, **settings):
            engine = SparkEngine(topology, sources, state, spark_session, **settings)
            engines.callback(engine.close)
            return engine

        yield start


def test_a_drain_does_not_wait_for_an_operator_that_cannot_continue():
    pipeline = Pipeline("orders")
    pipeline.add(len, name="price", after=pipeline.source("orders"))
    nothing = SimpleNamespace(stop=lambda: None, close_sources=lambda: None)
    engine = object.__new__(SparkEngine)
    engine._closed, engine._fails, engine._outputs = False, True, {}
    engine._feeds = engine._batches = engine._placement = nothing
    engine.chains = Chains.planned(pipeline.topology())
    engine.clock = WallClock()
    engine._generations = SimpleNamespace(health=lambda: RUNNING)
    engine._connection = SimpleNamespace(
        ledger=SimpleNamespace(totals=lambda: SimpleNamespace(waiting=lambda node: 1)),
        board=SimpleNamespace(failures=lambda: {("price", 0): "ValueError: no number"}),
    )
    with pytest.raises(EngineError, match="'price' failed: ValueError: no number; its events wait"):
        engine.drain(PATIENCE)


def test_chains_are_chosen_when_nobody_of_a_killed_run_puts_events_in_between(
    tmp_path, monkeypatch
):
    topology, backend = storing(tmp_path / "out.db"), SqliteBackend(tmp_path / "state")
    backend.prepare("storing", {"work": OperatorLanes(1)})
    with backend.connect() as left, monkeypatch.context() as patches:
        left.lanes.join(("work", 0), 1)

        def choose(*_, **__):
            assert not left.lanes.joined()
            raise InvalidInputError("seen")

        patches.setattr(engine_module, "chosen_chains", choose)
        with pytest.raises(InvalidInputError, match="seen"):
            SparkEngine(topology, {"in": numbered(1, 1)}, backend)


@pytest.mark.parametrize("grouping", ["load-aware", "pull"])
def test_events_go_through_while_plans_change(started, tmp_path, grouping):
    topology = storing(tmp_path / "out.db", grouping)
    engine = started(topology, {"in": numbered(500, 4)}, tmp_path / "state")
    for count in (3, 1, 2, 3, 1):
        engine.apply(Plan({"work": count, "store": 4 - count}))
        time.sleep(0.8)
    eventually(lambda: processed(engine) == 2000)
    stats = engine.observe()
    engine.close()
    assert stored(tmp_path / "out.db") == list(range(2000))
    assert stats.operators["work"].processed == 2000
    assert stats.operators["store"].queued == 0
    assert stats.latency.count == 2000


def test_replicas_that_are_killed_lose_nothing_and_repeat_nothing(started, tmp_path):
    topology = storing(tmp_path / "out.db")
    engine = started(topology, {"in": numbered(500, 8)}, tmp_path / "state")
    engine.apply(Plan({"work": 3, "store": 3}))
    choose = random.Random(0)
    for _ in range(4):
        time.sleep(1.5)
        victims = members(engine)
        with suppress(ProcessLookupError):  # The last victim may not have been replaced yet.
            os.kill(victims[choose.choice(sorted(victims))].pid, signal.SIGKILL)
    eventually(lambda: processed(engine) >= 4000)
    engine.close()
    after = totals(engine)
    assert after.counts["in", 0].emitted == 4000
    assert sum(of.processed for (n, _), of in after.counts.items() if n == "store") == 4000
    assert after.waiting("work") == after.waiting("store") == 0
    assert stored(tmp_path / "out.db") == list(range(4000))


def test_a_new_generation_takes_over_while_events_flow(started, tmp_path):
    topology = storing(tmp_path / "out.db", pool=2)
    source = {"in": numbered(300, 10)}
    engine = started(topology, source, tmp_path / "state", generation=4.0)
    first = processes(engine)
    replaced = set()

    def everybody_is_replaced():
        now = processes(engine)
        replaced.update(name for name in now if now[name] != first.get(name))
        return replaced == first.keys()

    eventually(everybody_is_replaced, PATIENCE)
    eventually(lambda: processed(engine) == 3000, PATIENCE)
    engine.close()
    assert stored(tmp_path / "out.db") == list(range(3000))


def test_a_generation_whose_query_dies_is_followed_by_another_where_slots_are_scarce(
    started, tmp_path, monkeypatch
):
    topology = storing(tmp_path / "out.db", pool=2)
    needed = slots_for(topology, generations=1)
    monkeypatch.setattr(engine_module, "task_slots", lambda session: needed)
    source = {"in": numbered(300, 5)}
    engine = started(topology, source, tmp_path / "state", generation=0.5)
    first = processes(engine)
    eventually(lambda: processed(engine) > 300)
    assert processes(engine) == first, "there are no slots for periodic generations"
    engine._generations._running.query.stop()
    eventually(lambda: processed(engine) == 1500, PATIENCE)
    eventually(lambda: first.items().isdisjoint(processes(engine).items()), PATIENCE)
    engine.close()
    assert stored(tmp_path / "out.db") == list(range(1500))


def test_a_full_disk_is_waited_for_while_generations_are_due(started, tmp_path):
    with small_disk(tmp_path / "disk", megabytes=80) as disk:
        topology = storing(tmp_path / "out.db", pool=1)
        sources = {"in": numbered(500, 5)}
        engine = started(topology, sources, disk / "state", generation=2.0)
        eventually(lambda: processed(engine))
        ballast = fill(disk)
        waiting = eventually(lambda: engine.health().state is State.WAITING and engine.health())
        assert "full" in waiting.why
        eventually(lambda: "a new generation" in engine.health().why)
        ballast.unlink()
        eventually(lambda: processed(engine) == 2500, PATIENCE)
        eventually(lambda: engine.health().state is State.RUNNING, PATIENCE)
        engine.close()
        assert stored(tmp_path / "out.db") == list(range(2500))


def test_an_operator_that_raises_ends_the_run_if_that_is_wished(started, tmp_path):
    def refuse(table):
        raise ValueError("not today")

    pipeline = Pipeline("strict")
    pipeline.add(refuse, after=pipeline.source("in"), name="work", pool=1)
    source = {"in": numbered(10, 5)}
    engine = started(pipeline.topology(), source, tmp_path / "state", on_error="fail")
    eventually(lambda: failures(engine))
    with pytest.raises(EngineError, match="'work' failed: ValueError: not today; its events wait"):
        engine.observe()
    assert totals(engine).waiting("work") > 0
    engine.close()


def test_a_run_goes_on_where_it_stopped(started, tmp_path):
    topology = storing(tmp_path / "out.db", pool=2)
    source = {"in": numbered(200, 5)}
    engine = started(topology, source, tmp_path / "state")
    eventually(lambda: processed(engine) > 200)
    engine.close()
    engine = started(topology, source, tmp_path / "state")
    eventually(lambda: processed(engine) == 1000)
    engine.close()
    assert stored(tmp_path / "out.db") == list(range(1000))


def test_what_cannot_run_is_refused_before_the_first_event(started, tmp_path):
    topology = storing(tmp_path / "out.db")
    with pytest.raises(InvalidInputError, match="nothing feeds the source 'in'"):
        started(topology, {}, tmp_path / "state")
    source = {"in": numbered(1, 1)}
    with pytest.raises(InvalidInputError, match="task slots, and the Spark session has 64"):
        started(storing(tmp_path / "x", pool=31), source, tmp_path / "large")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match=r"state folder .*file cannot be used"):
        started(topology, source, tmp_path / "file")


def test_a_replica_that_cannot_start_is_named_at_once(started, tmp_path):
    def refuse():
        raise RuntimeError("no database today")

    topology = storing(tmp_path / "out.db", setup=refuse)
    with pytest.raises(EngineError, match="'work' cannot start: RuntimeError: no database today"):
        started(topology, {"in": numbered(1, 1)}, tmp_path / "state")
