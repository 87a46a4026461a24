"""Whatever fails in elastream, the query runs on."""

import time

import pytest

import elastream
from elastream.errors import InvalidInputError
from elastream.policies import Policy

PATIENCE = 60.0


def wait_for(reached):
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


@pytest.fixture
def started(spark_session, tmp_path):
    """Starts queries, and stops them at the end."""
    queries = []

    def start(**trigger):
        frame = spark_session.readStream.format("rate").option("rowsPerSecond", 20).load()
        writer = frame.writeStream.format("noop").queryName(f"rows-{tmp_path.name}")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        queries.append(writer.trigger(**trigger).start())
        return queries[-1]

    yield start
    for query in queries:
        query.stop()


class Broken(Policy):
    """Never decides."""

    name = "broken"

    @property
    def horizon(self):
        return 1

    def decide(self, context):
        raise ZeroDivisionError("a mistake")


@pytest.mark.xdist_group("spark")
def test_neither_a_broken_policy_nor_a_broken_watcher_ends_anything(started):
    query = started(processingTime="500 milliseconds")
    windows = []

    def broken(stats):
        windows.append(stats)
        raise ZeroDivisionError("a broken watcher")

    with elastream.attach(query, policy=Broken(), td=0.5, advice_only=True) as scaler:
        scaler.engine.watch(broken)
        wait_for(lambda: len(windows) > 1)
        wait_for(lambda: scaler.status().last and "a mistake" in scaler.status().last.note)
        wait_for(lambda: "a broken watcher" in scaler.status().problem)
        wait_for(lambda: scaler.engine.record.totals.ended > 1)
        with pytest.raises(InvalidInputError, match="local mode"):
            scaler.engine.apply(elastream.core.decision.Plan({scaler.engine.name: 2}))
    assert query.isActive, query.exception()


@pytest.mark.xdist_group("spark")
def test_a_query_that_is_restarted_with_another_trigger_is_followed(started):
    first = started(processingTime="1 second")
    with elastream.attach(first, advice_only=True) as scaler:
        assert scaler.engine.record.every == 1.0
        first.stop()
        assert "not running" in str(scaler.status())
        started(processingTime="2 seconds")
        wait_for(lambda: scaler.engine.record.every == 2.0)


@pytest.mark.xdist_group("spark")
def test_a_continuous_query_is_refused(started):
    query = started(continuous="1 second")
    with pytest.raises(InvalidInputError, match="continuous trigger"):
        elastream.attach(query, advice_only=True)
    assert query.isActive
