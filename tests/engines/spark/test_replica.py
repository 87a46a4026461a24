import threading
import time

import pyarrow as pa
import pytest

from elastream.core.lanes import lanes_of_keys
from elastream.core.latency import bin_of
from elastream.core.pipeline import Pipeline
from elastream.engines.base import WhenFull
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.options import OnError
from elastream.engines.spark.worker import chain as chain_module
from elastream.engines.spark.worker import member as member_module
from elastream.engines.spark.worker import replica as replica_module
from elastream.errors import BackendUnavailableError
from support.memory_backend import MemoryBoard
from support.waiting import eventually
from support.workers import Workers, rows_of

WORK = ("work", 0)


def double(table):
    return table.append_column("twice", [[2 * n for n in table["n"].to_pylist()]])


def same(table):
    return table


def workers_of(function=double, grouping="shuffle", queue_size=1000, **settings):
    """Two replicas of `work`, whose output waits for two replicas of `end`."""
    options = {key: settings.pop(key) for key in ("on_error", "on_full") if key in settings}
    pipeline = Pipeline("test")
    pipeline.add(
        function, after=pipeline.source("in"), name="work", pool=2, grouping=grouping, **settings
    )
    pipeline.add(len, after="work", name="end", pool=2)
    return Workers(pipeline.topology(), queue_size=queue_size, **options)


def test_a_replica_takes_runs_emits_and_counts():
    workers = workers_of()
    workers.put(range(40))
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 40)
    counts = workers.ledger.counts(WORK)
    assert (counts.processed, counts.emitted, counts.sent) == (40, 40, {"end": 40})
    assert counts.busy > 0
    assert counts.units > 0
    # Whatever the units were, times of events vary by nothing or more (Cauchy and Schwarz).
    assert counts.squares >= 0.999 * counts.busy**2 / counts.processed
    assert workers.waiting("work") == 0
    found = sorted(workers.rows(), key=lambda row: row["n"])
    assert found == [{"n": n, "twice": 2 * n} for n in range(40)]


def test_while_the_plan_is_halted_what_waits_stays_where_it_is():
    workers = workers_of()
    workers.plan(halted=True, work=(0,), end=(0, 1))
    with workers.running(WORK):
        workers.put(range(10))
        eventually(lambda: WORK in workers.board.members())
        time.sleep(0.1)
        assert workers.waiting("work") == 10
        workers.plan(work=(0,), end=(0, 1))
        eventually(lambda: workers.waiting("end") == 10)


def test_events_are_shared_among_the_active_replicas_of_the_next_operator():
    workers = workers_of()
    workers.put(range(72))
    workers.plan(work=(0,), end=(0, 1), owners={"end": (0,) * 4 + (1,) * 4})
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 72)
    lengths = workers.lengths("end")
    assert sum(events for lane, events in lengths.items() if lane < 4) == 36


def test_a_new_plan_is_followed_at_once():
    workers = workers_of()
    workers.plan(work=(0,), end=(0,), owners={"end": (0,) * 8})
    with workers.running(WORK):
        workers.put(range(32))
        eventually(lambda: workers.waiting("end") == 32)
        workers.plan(work=(0,), end=(1,), owners={"end": (0,) * 4 + (1,) * 4})
        before = workers.lengths("end")
        workers.put(range(32))
        eventually(lambda: workers.waiting("end") == 64)
    after = workers.lengths("end")
    assert all(after.get(lane, 0) == before.get(lane, 0) for lane in range(4))


def test_a_replica_that_is_turned_off_leaves_its_lanes_to_others():
    workers = workers_of()
    workers.put(range(30), lane=3)
    workers.plan(work=(0,), end=(0, 1), owners={"work": (0,) * 8})
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 30)
        workers.plan(work=(1,), end=(0, 1), owners={"work": (1,) * 8})
        eventually(lambda: not any(of.owner == 0 for of in _lanes(workers).values()))
        workers.put(range(30), lane=3)
        with workers.running(("work", 1)):
            eventually(lambda: workers.waiting("end") == 60)
    assert workers.ledger.counts(("work", 1)).processed == 30


def _lanes(workers):
    return workers.ledger.totals().lanes["work"]


def test_before_the_first_plan_nothing_moves():
    workers = workers_of()
    workers.put(range(30))
    with workers.running(WORK) as (thread,):
        eventually(lambda: WORK in workers.board.members())
        thread.join(timeout=0.1)
        assert workers.waiting("work") == 30


def test_a_replica_that_is_off_leaves_the_shared_lane_to_the_others():
    workers = workers_of(grouping="pull")
    workers.put(range(30), lane=SHARED_LANE)
    workers.plan(work=(1,), end=(0, 1))
    with workers.running(WORK, ("work", 1)):
        eventually(lambda: workers.waiting("end") == 30)
    assert workers.ledger.counts(WORK).processed == 0
    assert workers.ledger.counts(("work", 1)).processed == 30


def test_as_much_is_taken_as_takes_about_20_ms_and_at_least_one_event():
    sizes = []

    def record(table):
        sizes.append(table.num_rows)

    workers = workers_of(record, execution_time=0.005)
    workers.put(range(40))
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("work") == 0)
    assert sizes[0] == 4
    slow = workers_of(lambda table: sizes.append(table.num_rows), execution_time=60.0)
    sizes.clear()
    slow.put(range(2))
    slow.plan(work=(0,), end=(0, 1))
    with slow.running(WORK):
        eventually(lambda: slow.waiting("work") == 0)
    assert sizes[0] == 1


def fail_on_seven(rows: list):
    if any(row["n"] == 7 for row in rows):
        raise ValueError("seven")
    return rows


def test_events_that_fail_are_set_aside_and_the_rest_go_on():
    workers = workers_of(fail_on_seven)
    workers.put(range(20), lane=5)
    workers.plan(work=(0,), end=(0, 1), owners={"work": (1, 1, 1, 0, 0, 0, 0, 0)})
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 19)
    (letter,) = workers.dead_letters.read()
    assert (letter.operator, letter.error, letter.events) == ("work", "ValueError: seven", 1)
    assert rows_of(letter) == [{"n": 7}]
    assert letter.lane in range(3, 8), "a lane of the replica that could not process it"
    counts = workers.ledger.counts(WORK)
    assert counts.processed == 19


def test_a_dead_letter_that_is_tried_again_can_go_through():
    broken = [True]

    def work(table):
        if broken[0]:
            raise ValueError("not yet")
        return table

    workers = workers_of(work)
    workers.put([1])
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: list(workers.dead_letters.read()))
        broken.clear()
        broken.append(False)
        assert workers.dead_letters.retry(list(workers.dead_letters.read())) == 1
        eventually(lambda: workers.waiting("end") == 1)
    assert list(workers.dead_letters.read()) == []


def test_a_dead_letter_of_a_keyed_operator_belongs_to_the_lane_of_its_key():
    workers = workers_of(fail_on_seven, grouping="key", key="n")
    workers.put([7], lane=0)
    workers.plan(work=(0,), end=(0, 1), owners={"work": (0,) * 8})
    with workers.running(WORK):
        eventually(lambda: list(workers.dead_letters.read()))
    (letter,) = workers.dead_letters.read()
    assert letter.lane == lanes_of_keys([7], 8)[0]


def test_an_error_ends_the_run_if_that_is_wished():
    workers = workers_of(fail_on_seven, on_error=OnError.FAIL)
    workers.put(range(20))
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK) as (thread,):
        eventually(workers.board.failures)
        assert workers.board.failures() == {WORK: "ValueError: seven"}
        assert thread.is_alive(), "it keeps its place"
        assert workers.waiting("work") == 20 - workers.ledger.counts(WORK).processed >= 13
    assert list(workers.dead_letters.read()) == []


def without_user(rows: list):
    bad = any(row["n"] == 3 for row in rows)
    return rows if bad else [{**row, "user": "ann"} for row in rows]


def test_what_the_successor_cannot_take_is_set_aside():
    pipeline = Pipeline("test")
    pipeline.add(without_user, after=pipeline.source("in"), name="work", pool=2)
    pipeline.add(len, after="work", name="end", pool=2, grouping="key", key="user")
    workers = Workers(pipeline.topology())
    workers.put([1, 3, 5])
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 2)
    (letter,) = workers.dead_letters.read()
    assert letter.error == (
        "InvalidTopologyError: operator 'end' needs 'user', but events from 'work' have only "
        "the columns: n"
    )


def test_what_has_a_key_without_a_hash_is_set_aside_and_the_rest_goes_on():
    def with_unions(table):
        times = [10**18 if n == 2 else n for n in table["n"].to_pylist()]
        kinds = pa.array([0] * len(times), pa.int8())
        parts = [pa.array(times, pa.timestamp("s")), pa.nulls(len(times), pa.string())]
        return table.append_column("user", pa.UnionArray.from_sparse(kinds, parts))

    pipeline = Pipeline("test")
    pipeline.add(with_unions, after=pipeline.source("in"), name="work", pool=2)
    pipeline.add(len, after="work", name="end", pool=2, grouping="key", key="user")
    workers = Workers(pipeline.topology())
    workers.put(range(4))
    workers.plan(work=(0,), end=(0,))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 3)
    (letter,) = workers.dead_letters.read()
    assert "a key in the column 'user'" in letter.error
    assert rows_of(letter) == [{"n": 2}]


def test_batches_whose_columns_do_not_go_together_are_both_processed():
    workers = workers_of(same)
    workers.put(range(3))
    workers.put(["three"])
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 4)


def test_latency_is_of_every_event_where_the_pipeline_ends(monkeypatch):
    monkeypatch.setattr(chain_module, "time", lambda: 100.0)
    pipeline = Pipeline("test")
    pipeline.add(same, after=pipeline.source("in"), name="work", pool=1)
    workers = Workers(pipeline.topology())
    workers.put([1, 2], born=99.0)
    workers.put([3], born=40.0)
    workers.plan(work=(0,))
    with workers.running(WORK):
        eventually(lambda: workers.ledger.counts(WORK).processed == 3)
    assert dict(workers.ledger.counts(WORK).latency.bins) == {bin_of(1.0): 2, bin_of(60.0): 1}


def test_a_full_queue_can_drop_and_count():
    workers = workers_of(queue_size=30, on_full=WhenFull.DROP)
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        for filled in (20, 40):
            workers.put(range(20))
            eventually(lambda filled=filled: workers.waiting("end") == filled)
        workers.put(range(20))
        eventually(lambda: workers.ledger.counts(WORK).processed == 60)
    counts = workers.ledger.counts(WORK)
    assert (counts.sent, counts.lost) == ({"end": 60}, {"end": 20})
    assert workers.waiting("end") == 40


def slow(table):
    time.sleep(table.num_rows / 1000)
    return table


def test_a_full_queue_pushes_back():
    workers = workers_of(slow, execution_time=0.001, queue_size=50)
    for _ in range(10):
        workers.put(range(20))
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK) as (thread,):
        eventually(lambda: workers.waiting("end") >= 50)
        thread.join(timeout=0.2)
        assert workers.waiting("end") <= 80
        assert workers.waiting("work") >= 120


def test_set_up_and_tear_down_happen_once_per_replica():
    happened = []

    def setup():
        happened.append("up")
        return "resource"

    def work(table, resource):
        happened.append(resource)
        return table

    workers = workers_of(work, setup=setup, teardown=lambda _: happened.append("down"))
    workers.put(range(3))
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 3)
    assert (happened[0], happened.count("up")) == ("up", 1)
    assert happened[-1] == "down"
    assert set(happened[1:-1]) == {"resource"}


def test_a_replica_is_set_up_and_says_so_before_its_generation_begins():
    happened = threading.Event()
    workers = workers_of(lambda table, _: table, setup=happened.set)
    workers.put(range(3))
    workers.plan(work=(0,), end=(0, 1))
    workers.generation = workers.board.new_generation(workers.deployment.members)
    with workers.running(WORK) as (thread,):
        eventually(lambda: workers.board.ready(workers.generation) == {WORK})
        assert happened.is_set()
        thread.join(timeout=0.1)
        assert (WORK in workers.board.members(), workers.waiting("work")) == (False, 3)
        workers.board.start(workers.generation)
        eventually(lambda: workers.waiting("end") == 3)


def test_a_replica_of_an_abandoned_generation_ends():
    workers = workers_of()
    workers.generation = workers.board.new_generation(workers.deployment.members)
    with workers.running(WORK) as (thread,):
        eventually(lambda: workers.board.ready(workers.generation))
        workers.board.abandon(workers.generation)
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert workers.board.members() == {}


def test_a_replica_that_is_replaced_stops_by_itself():
    workers = workers_of()
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK) as (thread,):
        eventually(lambda: WORK in workers.board.members())
        workers.joined(WORK)
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_replica_says_that_it_is_well(monkeypatch):
    monkeypatch.setattr(member_module, "BEAT_SECONDS", 0.1)
    workers = workers_of()
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: WORK in workers.board.members())
        before = workers.board.members()[WORK].heartbeat
        eventually(lambda: workers.board.members()[WORK].heartbeat > before)


def test_a_heartbeat_that_the_backend_could_not_take_is_made_up_for_soon(monkeypatch):
    """Otherwise a member that is well might be silent for so long that it counts as dead."""
    monkeypatch.setattr(member_module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(replica_module, "LOOK_SECONDS", 0.01)
    tried = []

    def beat(board, name):
        tried.append(time.monotonic())
        if len(tried) == 1:
            raise BackendUnavailableError("the disk is full")

    monkeypatch.setattr(MemoryBoard, "beat", beat)
    workers = workers_of()
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: len(tried) == 2)
    assert tried[1] - tried[0] < member_module.BEAT_SECONDS / 2


@pytest.mark.parametrize("size", [1, 2000])
def test_a_unit_that_comes_to_nothing_is_done_all_the_same(size):
    workers = workers_of(lambda table: None)
    workers.put(range(size))
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: workers.ledger.counts(WORK).processed == size)
    assert (workers.waiting("work"), workers.waiting("end")) == (0, 0)


def test_what_is_put_out_is_as_old_as_what_came_in():
    workers = workers_of(lambda table: pa.concat_tables([table, table]))
    workers.put([1], born=5.0)
    workers.plan(work=(0,), end=(0, 1))
    with workers.running(WORK):
        eventually(lambda: workers.waiting("end") == 2)
    end = workers.joined(("end", 0), range(8))
    assert [at for each in end.lanes.take(10) for at in each.births.times()] == [5.0, 5.0]
