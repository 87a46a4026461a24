"""The grouping `osg` on Spark: replicas tell producers what values cost."""

import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from elastream.core.groupings.osg import Osg
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.base import ActivePlan, Counts, StoredBatch
from elastream.engines.spark.backends.sqlite import SqliteTransport
from elastream.engines.spark.options import Handling
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.routing import Emitter

SECONDS = {"cheap": 0.0, "dear": 0.002}


def wait(table):
    for word in table["word"].to_pylist():
        time.sleep(SECONDS[word])


@pytest.fixture
def topology():
    pipeline = Pipeline("words")
    pipeline.add(wait, after=pipeline.source("in"), name="work", pool=2, grouping=Osg(), key="word")
    return pipeline.topology()


@pytest.fixture
def producer(topology, tmp_path):
    end = SqliteTransport(tmp_path)
    end.join(("in", 0))
    end.publish(ActivePlan({"work": (0, 1)}))
    yield end
    end.close()


@pytest.fixture
def replicas(topology, producer):
    """Both replicas, on threads of their own."""
    ends = [SqliteTransport(producer.folder) for _ in range(2)]
    deployment = Deployment(topology, {}, Handling())
    members = [deployment.member("work", number, end) for number, end in enumerate(ends)]
    threads = [threading.Thread(target=member.run) for member in members]
    for thread in threads:
        thread.start()
    yield
    producer.dismiss()
    for thread, end in zip(threads, ends, strict=True):
        thread.join()
        end.close()


def test_a_producer_learns_what_values_cost_each_replica(topology, producer, replicas):
    emitter = Emitter(("in", 0), topology.outgoing["in"], topology.by_name)
    emitter.follow(producer.plan())
    words = pa.table({"word": ["cheap", "cheap", "dear", "dear"] * 8})
    for _ in range(400):
        routed = emitter.route("work", words, time.time())
        assert producer.commit([], list(routed), Counts())
        while producer.waiting("work") > 64:
            time.sleep(0.001)
        for operator, feedback in producer.hear():
            emitter.learn(operator, feedback)
        if emitter.state("work").known.all():
            break
    state = emitter.state("work")
    assert state.known.all()
    # Every replica has a cell where only dear words are, and one where only cheap ones are.
    costs = state.time / np.maximum(state.frequency, 1)
    assert (costs.max(axis=1) >= SECONDS["dear"]).all()
    assert (np.where(state.frequency > 0, costs, np.inf).min(axis=1) < SECONDS["dear"] / 2).all()


def test_an_event_of_a_replica_that_was_not_asked_answers_nobody(topology, producer, replicas):
    data = to_bytes(pa.table({"word": ["cheap"]}))
    producer.commit([], [StoredBatch("work", 0, 1, time.time(), data)], Counts())
    while producer.waiting("work"):
        time.sleep(0.001)
    assert producer.hear() == []
