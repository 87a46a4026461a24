import threading
from contextlib import contextmanager

import pyarrow as pa
import pytest

from elastream.core.groupings import SHARED_QUEUE
from elastream.core.pipeline import Pipeline
from elastream.engines.base import WhenFull
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.base import ActivePlan, Counts, StoredBatch
from elastream.engines.spark.backends.sqlite import SqliteTransport
from elastream.engines.spark.options import Handling, OnError
from elastream.engines.spark.worker.deployment import Deployment


@pytest.fixture
def transport(tmp_path):
    end = SqliteTransport(tmp_path)
    end.join(("in", 0))
    yield end
    end.close()


def double(table):
    return table.append_column("twice", [[2 * n for n in table["n"].to_pylist()]])


def pipeline_of(function=double, grouping="shuffle", **settings):
    pipeline = Pipeline("test")
    pipeline.add(
        function, after=pipeline.source("in"), name="work", pool=2, grouping=grouping, **settings
    )
    pipeline.add(len, after="work", name="end", pool=2)
    return pipeline


def put(transport, numbers, replica=0):
    data = to_bytes(pa.table({"n": list(numbers)}))
    batch = StoredBatch("work", replica, len(numbers), born=0.0, data=data)
    transport.commit([], [batch], Counts())


def activate(transport, work=(0,), end=(0, 1)):
    transport.publish(ActivePlan({"work": work, "end": end}))


@contextmanager
def running(transport, pipeline, number=0, queue_size=1000, **handling):
    """A replica on a thread of its own, dismissed at the end."""
    own = SqliteTransport(transport.folder)
    deployment = Deployment(pipeline.topology(), {}, Handling(queue_size, **handling))
    replica = deployment.member("work", number, own)
    thread = threading.Thread(target=replica.run)
    thread.start()
    try:
        yield thread
    finally:
        transport.dismiss()
        thread.join()
        own.close()


def eventually(condition):
    ready = threading.Event()
    for _ in range(2000):
        if condition():
            return
        ready.wait(0.005)
    raise AssertionError("it did not happen within 10 s")


def results(transport):
    rows = []
    for replica in (0, 1):
        end = SqliteTransport(transport.folder)
        end.join(("end", replica))
        for batch in end.take(10_000, shared=False):
            rows += from_bytes(batch.data).to_pylist()
        end.close()
    return sorted(rows, key=lambda row: row["n"])


def test_a_replica_takes_runs_emits_and_counts(transport):
    put(transport, range(40))
    activate(transport)
    with running(transport, pipeline_of()):
        eventually(lambda: transport.waiting("end") == 40)
    assert results(transport) == [{"n": n, "twice": 2 * n} for n in range(40)]
    counts = transport.totals().counts["work", 0]
    assert (counts.processed, counts.emitted, counts.sent) == (40, 40, {"end": 40})
    assert counts.busy > 0
    assert transport.waiting("work") == 0


def test_events_are_shared_among_the_active_replicas_of_the_next_operator(transport):
    put(transport, range(64))
    activate(transport)
    with running(transport, pipeline_of()):
        eventually(lambda: transport.waiting("end") == 64)
    assert transport.totals().queued["end", 0] == transport.totals().queued["end", 1] == 32


def test_a_new_plan_is_followed_at_once(transport):
    activate(transport, end=(0,))
    with running(transport, pipeline_of()):
        put(transport, range(32))
        eventually(lambda: transport.waiting("end") == 32)
        activate(transport, end=(1,))
        put(transport, range(32))
        eventually(lambda: transport.waiting("end") == 64)
    assert transport.totals().queued["end", 1] == 32


def test_a_replica_that_is_turned_off_finishes_its_queue(transport):
    put(transport, range(30))
    activate(transport, work=(1,))
    with running(transport, pipeline_of()):
        eventually(lambda: transport.waiting("end") == 30)


def test_a_replica_that_is_off_leaves_the_shared_queue_to_the_others(transport):
    put(transport, range(30), replica=SHARED_QUEUE)
    activate(transport, work=(1,))
    with (
        running(transport, pipeline_of(grouping="pull")),
        running(transport, pipeline_of(grouping="pull"), number=1),
    ):
        eventually(lambda: transport.waiting("end") == 30)
    assert set(transport.totals().counts) == {("in", 0), ("work", 1)}


def fail_on_seven(rows: list):
    if any(row["n"] == 7 for row in rows):
        raise ValueError("seven")
    return rows


def test_events_that_fail_are_set_aside_and_the_rest_go_on(transport):
    put(transport, range(20))
    activate(transport)
    with running(transport, pipeline_of(fail_on_seven)):
        eventually(lambda: transport.waiting("end") == 19)
    (letter,) = transport.dead_letters()
    assert (letter.operator, letter.error) == ("work", "ValueError: seven")
    assert from_bytes(letter.data).to_pylist() == [{"n": 7}]
    assert transport.totals().counts["work", 0].dropped == 1


def test_an_error_ends_the_run_if_that_is_wished(transport):
    put(transport, range(20))
    activate(transport)
    with running(transport, pipeline_of(fail_on_seven), on_error=OnError.FAIL):
        eventually(transport.failures)
        assert transport.failures() == {("work", 0): "ValueError: seven"}
        assert transport.waiting("work") == 20
    assert list(transport.dead_letters()) == []


def without_user(rows: list):
    bad = any(row["n"] == 3 for row in rows)
    return rows if bad else [{**row, "user": "ann"} for row in rows]


def test_what_the_successor_cannot_take_is_set_aside(transport):
    pipeline = Pipeline("test")
    pipeline.add(without_user, after=pipeline.source("in"), name="work", pool=2)
    pipeline.add(len, after="work", name="end", pool=2, grouping="key", key="user")
    put(transport, [1, 3, 5])
    activate(transport)
    with running(transport, pipeline):
        eventually(lambda: transport.waiting("end") == 2)
    (letter,) = transport.dead_letters()
    assert letter.error == (
        "InvalidTopologyError: operator 'end' needs 'user', and what comes from 'work' has only "
        "the columns: n"
    )


def test_batches_whose_columns_do_not_go_together_are_both_processed(transport):
    put(transport, range(3))
    put(transport, ["three"])
    activate(transport)
    with running(transport, pipeline_of(lambda table: table)):
        eventually(lambda: transport.waiting("end") == 4)


def test_a_full_queue_can_drop_and_count(transport):
    activate(transport)
    with running(transport, pipeline_of(), queue_size=30, on_full=WhenFull.DROP):
        for filled in (20, 40):
            put(transport, range(20))
            eventually(lambda filled=filled: transport.waiting("end") == filled)
        put(transport, range(20))
        eventually(lambda: transport.waiting("work") == 0)
        eventually(lambda: transport.totals().counts["work", 0].processed == 60)
    counts = transport.totals().counts["work", 0]
    assert (counts.sent, counts.lost) == ({"end": 60}, {"end": 20})
    assert transport.waiting("end") == 40


def test_a_full_queue_pushes_back(transport):
    for _ in range(10):
        put(transport, range(20))
    activate(transport)
    slow = pipeline_of(execution_time=0.001)
    with running(transport, slow, queue_size=50):
        eventually(lambda: transport.waiting("end") >= 50)
        threading.Event().wait(0.2)
        assert transport.waiting("end") <= 80
        assert transport.waiting("work") >= 120


def test_set_up_and_tear_down_happen_once_per_replica(transport, tmp_path):
    happened = []

    def setup():
        happened.append("up")
        return "resource"

    def work(table, resource):
        happened.append(resource)
        return table

    put(transport, range(3))
    activate(transport)
    with running(transport, pipeline_of(work, setup=setup, teardown=happened.append)):
        eventually(lambda: transport.waiting("end") == 3)
    assert happened == ["up", "resource", "resource"]


def test_a_replica_that_is_replaced_stops_by_itself(transport):
    activate(transport)
    with running(transport, pipeline_of()) as thread:
        eventually(lambda: ("work", 0) in transport.members())
        usurper = SqliteTransport(transport.folder)
        usurper.join(("work", 0))
        transport.publish(transport.plan())
        thread.join(timeout=10)
        assert not thread.is_alive()
        usurper.close()
