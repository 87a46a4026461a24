"""Attached queries on a real local standalone cluster, all in one session.

A process has one Spark session at a time, and other tests have one in local mode: so
`test_on_cluster` runs this file in a process of its own.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.contracts.test_engines import *  # noqa: F403

import elastream
from elastream.engines.attached.engine import AttachedEngine
from elastream.engines.attached.warm_up import DESCRIPTION
from elastream.engines.executors.fleet import Fleet
from elastream.engines.executors.spark import SparkCluster
from elastream.engines.executors.status import StatusStore
from elastream.errors import InvalidInputError

MOST = 3
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PATIENCE = 180.0


@pytest.fixture(scope="module")
def session():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    made = (
        SparkSession.builder.master(f"local-cluster[{MOST},1,512]")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # A task that fails ends its query, and the tests; only one test kills an executor at work.
        .config("spark.task.maxFailures", "1")
        .config("spark.executor.extraJavaOptions", JAVA)
        .config("spark.driver.extraJavaOptions", JAVA)
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


def started(session, folder, name="ticks", every="3 seconds"):
    """A query whose batches are far shorter than their interval, also on a busy machine."""
    frame = session.readStream.format("rate").option("rowsPerSecond", 100)
    frame = frame.option("numPartitions", 6).load()
    writer = frame.writeStream.format("noop").queryName(name)
    writer = writer.option("checkpointLocation", str(folder))
    return writer.trigger(processingTime=every).start()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoint")


@pytest.fixture(scope="module")
def query(session, folder):
    """Runs through all tests but the last ones, which stop it."""
    running = started(session, folder)
    wait_for(lambda: running.lastProgress or running.exception())
    assert running.isActive, running.exception()
    return running


@pytest.fixture
def fleet(session):
    cluster = SparkCluster(session)
    # Spark lists those that an earlier test has released for some seconds more.
    wait_for(lambda: {executor.name for executor in cluster.list()} == set(processes()))
    made = Fleet(cluster, 1, MOST)
    made.start()
    yield made
    made.close()


@pytest.fixture
def engine(session, query, fleet):
    made = AttachedEngine(session, query, fleet, sample=1.0, objective=10.0, target=0.8)
    yield made
    made.close()


def wait_for(reached, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def processes():
    """The executors' processes, by the names of the executors."""
    driver = SparkSession.getActiveSession().sparkContext._gateway.proc.pid
    found = {}
    for thread in Path(f"/proc/{driver}/task").glob("*/children"):
        with suppress(OSError):  # A thread that has just ended.
            for process in thread.read_text().split():
                name = _executor(process)
                if name is not None:
                    found[name] = int(process)
    return found


def _executor(process):
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        return words[words.index(b"--executor-id") + 1].decode()
    except (OSError, ValueError):  # It has just ended, or is none.
        return None


def names(fleet):
    return {executor.name for executor in fleet.present}


def test_executors_are_listed_released_and_asked_for(query, fleet):
    fleet.want("test", MOST)
    wait_for(lambda: len(fleet.present) == MOST)
    assert all(executor.cores == 1 for executor in fleet.present)
    for count in (1, 2):
        fleet.want("test", count)
        wait_for(lambda count=count: len(fleet.present) == count)
        wait_for(lambda count=count: len(processes()) == count)
    assert 0 < fleet.lead_time < PATIENCE
    assert query.isActive, query.exception()


def test_an_executor_that_is_killed_while_scaling_is_replaced(query, fleet):
    fleet.want("test", MOST - 1)
    wait_for(lambda: len(fleet.present) == len(processes()) == MOST - 1)
    victim = min(names(fleet))
    # The tests allow no task to fail: the next batch begins in a second at the earliest.
    ended = query.lastProgress.batchId
    wait_for(lambda: query.lastProgress.batchId > ended)
    wait_for(lambda: not query.status["isTriggerActive"])
    fleet.want("test", MOST)
    fleet.step()
    assert len(fleet.present) == MOST - 1, "the one that was asked for is still to come"
    os.kill(processes()[victim], signal.SIGKILL)
    wait_for(lambda: victim not in names(fleet))
    wait_for(lambda: len(fleet.present) == len(processes()) == MOST)
    assert victim not in names(fleet)
    assert query.isActive, query.exception()


def test_a_query_is_scaled_and_its_executors_restored(query, tmp_path):
    before, file = len(processes()), tmp_path / "history.db"
    with elastream.attach(query, executors=(1, MOST), td=1.0, history=file) as scaler:
        wait_for(lambda: scaler.status().model)
        wait_for(lambda: scaler.status().executors == 1)
        status = scaler.status()
        assert status.query == "ticks"
        assert status.rows_per_second == pytest.approx(100, rel=0.5)
        assert "ticks: 1 executors" in str(status)
        with pytest.raises(InvalidInputError, match="already attached"):
            elastream.attach(query, executors=(1, MOST))
        scaler.stop(restore=True)
    wait_for(lambda: len(processes()) == before)
    assert file.stat().st_size > 0
    assert query.isActive, query.exception()


def test_advice_only_changes_nothing(query):
    before = set(processes())
    other = elastream.policy("static", replicas=1 if len(before) > 1 else 2)
    with elastream.attach(
        query, executors=(1, MOST), td=1.0, policy=other, guards=(), advice_only=True
    ) as scaler:
        wait_for(lambda: scaler.status().last and scaler.status().last.outcome == "advised")
    assert set(processes()) == before


def test_two_queries_share_the_executors_each_in_its_own_way(session, query, tmp_path):
    other = started(session, tmp_path, "others", "2 seconds")
    with (
        elastream.attach(query, executors=(1, MOST), td=1.0, advice_only=True) as looks,
        elastream.attach(other, executors=(1, MOST), td=1.0) as scales,
    ):
        for count in (MOST, 1, 2):
            scales.loop.steering.set_replicas("me", "others", count)
            wait_for(lambda count=count: scales.status().wanted == count)
            wait_for(lambda count=count: looks.status().executors == count)
        ended = [of.engine.record.totals.ended for of in (looks, scales)]
        wait_for(lambda: looks.engine.record.totals.ended > ended[0])
        wait_for(lambda: scales.engine.record.totals.ended > ended[1])
    other.stop()
    assert query.isActive, query.exception()


@pytest.mark.parametrize(
    "trigger", [{"processingTime": "0 seconds"}, {"processingTime": "3 seconds"}]
)
def test_executors_go_between_batches_that_shuffle(session, query, tmp_path, trigger):
    """Also where batches follow one another at once. A fetch that fails would end the query."""
    frame = session.readStream.format("rate").option("rowsPerSecond", 100).load()
    counted = frame.groupBy((frame.value % 10).alias("digit")).count()
    writer = counted.writeStream.format("noop").outputMode("complete").queryName("digits")
    writer = writer.option("checkpointLocation", str(tmp_path))
    other = writer.trigger(**trigger).start()
    with elastream.attach(other, executors=(1, MOST), td=1.0) as scaler:
        for count in (MOST, 1):
            scaler.loop.steering.set_replicas("me", "digits", count)
            wait_for(lambda count=count: scaler.status().wanted == count)
            wait_for(lambda count=count: scaler.status().executors == count)
            ended = scaler.engine.record.totals.ended
            wait_for(lambda ended=ended: scaler.engine.record.totals.ended > ended + 1)
    assert other.isActive, other.exception()
    other.stop()


def test_executors_can_be_set_by_hand(query):
    with elastream.attach(query, executors=(1, MOST), td=1.0) as scaler:
        scaler.loop.steering.set_replicas("me", "ticks", 2)
        wait_for(lambda: scaler.status().wanted == 2)
        wait_for(lambda: scaler.status().executors == 2)


def test_executors_that_come_get_a_first_task(session, query):
    jobs = StatusStore(session.sparkContext)
    with elastream.attach(query, executors=(1, MOST), td=1.0) as scaler:
        scaler.loop.steering.set_replicas("me", "ticks", 1)
        wait_for(lambda: scaler.status().executors == 1)
        before = jobs.jobs_started()
        scaler.loop.steering.set_replicas("me", "ticks", MOST)
        wait_for(lambda: scaler.status().executors == MOST)
        wait_for(lambda: not any(executor.new for executor in scaler.engine.fleet.present))
        since = [jobs.job(number) for number in range(before, jobs.jobs_started())]
    assert DESCRIPTION in {job["description"] for job in since if job}


def test_a_query_that_is_restarted_is_scaled_on(session, query, folder):
    with elastream.attach(query, executors=(1, MOST), td=1.0) as scaler:
        wait_for(lambda: scaler.engine.record.totals.ended)
        query.stop()
        wait_for(lambda: not scaler.status().running)
        wait_for(lambda: scaler.status().last and scaler.status().last.outcome == "skipped")
        again = started(session, folder)
        wait_for(lambda: scaler.status().running)
        ended = scaler.engine.record.totals.ended
        wait_for(lambda: scaler.engine.record.totals.ended > ended)
        assert scaler.status().problem == ""
        assert again.isActive, again.exception()


def test_nothing_of_an_earlier_attach_is_left(session):
    (running,) = session.streams.active
    listeners = session._jsparkSession.streams().listListeners
    before = len(listeners())
    with elastream.attach(running, executors=(1, MOST)):
        assert len(listeners()) == before + 1
        other = session.readStream.format("rate").load().writeStream.format("noop").start()
        with pytest.raises(InvalidInputError, match="shares them with"):
            elastream.attach(other, executors=(1, 2))
        other.stop()
    assert len(listeners()) == before
    running.stop()
    with pytest.raises(InvalidInputError, match="is not running"):
        elastream.attach(running)
    with pytest.raises(InvalidInputError, match="not a streaming query"):
        elastream.attach(session)
