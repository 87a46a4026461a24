"""What every transport must do, whatever carries the events."""

import multiprocessing
import threading
import time

import pytest

from elastream.core.groupings import SHARED_QUEUE
from elastream.core.groupings.base import SyncReply, SyncRequest, Utilization
from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.backends.base import (
    ActivePlan,
    Counts,
    DeadLetter,
    Inquiry,
    StoredBatch,
    SupersededError,
)
from elastream.engines.spark.backends.sqlite import SqliteTransport
from elastream.errors import InvalidInputError

TRANSPORTS = {"sqlite": SqliteTransport}


@pytest.fixture(params=TRANSPORTS)
def opened(request, tmp_path):
    """A function that opens one more end of the same transport."""
    ends = []

    def open_one(**settings):
        ends.append(TRANSPORTS[request.param](tmp_path / "state", **settings))
        return ends[-1]

    yield open_one
    for end in ends:
        end.close()


def batch(operator="b", replica=0, events=10, data=b"x"):
    return StoredBatch(operator, replica, events, born=1.0, data=data)


def feed(opened, *batches):
    producer = opened()
    producer.join(("a", 0))
    assert producer.commit([], batches, Counts())
    return producer


def consumer(opened, replica=0, operator="b"):
    end = opened()
    end.join((operator, replica))
    return end


def test_a_transport_belongs_to_one_pipeline(opened):
    opened().claim("words: in -> count")
    opened().claim("words: in -> count")
    with pytest.raises(
        InvalidInputError, match=r"belongs to another pipeline \(words: in -> count"
    ):
        opened().claim("tweets: in -> store")


def test_batches_come_out_in_the_order_in_which_they_went_in(opened):
    feed(opened, batch(data=b"1"), batch(data=b"2"), batch(replica=1, data=b"3"))
    taken = consumer(opened).take(most=100, shared=False)
    assert [one.data for one in taken] == [b"1", b"2"]


def test_a_take_is_at_least_one_batch_and_at_most_so_many_events(opened):
    feed(opened, *[batch(events=10)] * 4)
    end = consumer(opened)
    assert len(end.take(most=1, shared=False)) == 1
    assert len(end.take(most=29, shared=False)) == 2


def test_a_batch_stays_until_its_results_are_committed(opened):
    feed(opened, batch())
    end = consumer(opened)
    (taken,) = end.take(100, shared=False)
    assert end.take(100, shared=False) == [taken]
    assert end.commit([taken], [batch("c")], Counts(processed=10))
    assert end.take(100, shared=False) == []
    assert consumer(opened, operator="c").take(100, shared=False)[0].events == 10


def test_who_was_replaced_cannot_commit(opened):
    feed(opened, batch())
    slow = consumer(opened)
    taken = slow.take(100, shared=False)
    quick = consumer(opened)
    assert not slow.owns()
    assert not slow.commit(taken, [batch("c")], Counts(processed=10))
    assert quick.commit(quick.take(100, shared=False), [batch("c")], Counts(processed=10))
    assert quick.waiting("c") == 10
    assert quick.totals().counts["b", 0].processed == 10


def test_who_is_of_an_earlier_generation_cannot_come_back(opened):
    for generation in (1, 2, 2):
        newest = opened(generation=generation)
        newest.join(("b", 0))
    with pytest.raises(SupersededError):
        opened(generation=1).join(("b", 0))
    assert newest.owns()


def test_a_batch_of_the_shared_queue_is_taken_by_one_replica_only(opened):
    feed(opened, *[batch(replica=SHARED_QUEUE)] * 3)
    first, second = consumer(opened, 0), consumer(opened, 1)
    mine = first.take(most=20, shared=True)
    theirs = second.take(most=100, shared=True)
    assert len(mine) == 2
    assert len(theirs) == 1
    assert first.commit(mine, [], Counts())
    assert second.commit(theirs, [], Counts())
    assert first.waiting("b") == 0


def test_what_a_replaced_replica_took_from_the_shared_queue_is_free_again(opened):
    feed(opened, batch(replica=SHARED_QUEUE))
    slow = consumer(opened)
    taken = slow.take(100, shared=True)
    again = consumer(opened).take(100, shared=True)
    assert [one.ticket for one in again] == [one.ticket for one in taken]


def test_what_waits_can_be_shared_out_but_for_the_heads_of_the_queues(opened):
    feed(opened, *[batch(events=1)] * 40, batch(replica=SHARED_QUEUE, events=1))
    slow, quick = consumer(opened, 0), consumer(opened, 1)
    under_way = slow.take(most=4, shared=False)
    quick.share_out("b", [0, 1])
    queued = quick.totals().queued
    assert queued == {("b", 0): 24, ("b", 1): 16, ("b", SHARED_QUEUE): 1}
    assert slow.commit(under_way, [], Counts(4))


def test_work_that_was_shared_out_under_way_is_done_by_one_only(opened):
    feed(opened, *[batch(events=1)] * 40)
    slow, quick = consumer(opened, 0), consumer(opened, 1)
    under_way = slow.take(most=40, shared=False)
    quick.share_out("b", [1])
    assert not slow.commit(under_way, [batch("c", events=40)], Counts(40))
    assert quick.waiting("b") == 40
    assert quick.waiting("c") == 0


def test_what_waits_is_counted_per_operator(opened):
    end = feed(opened, batch(events=3), batch(replica=1, events=4), batch("c", events=5))
    assert (end.waiting("b"), end.waiting("c"), end.waiting("d")) == (7, 5, 0)
    assert end.totals().queued == {("b", 0): 3, ("b", 1): 4, ("c", 0): 5}


def test_counts_add_up(opened):
    end = consumer(opened)
    for _ in range(2):
        end.commit(
            [],
            [],
            Counts(
                10,
                8,
                1,
                0.5,
                0.25,
                {"c": 5, "d": 3},
                {"d": 2},
                LatencyHistogram.of([0.1, 0.1, 3.0]),
            ),
        )
    counts = opened().totals().counts["b", 0]
    assert (counts.processed, counts.emitted, counts.dropped) == (20, 16, 2)
    assert (counts.busy, counts.cpu) == (1.0, 0.5)
    assert counts.sent == {"c": 10, "d": 6}
    assert counts.lost == {"c": 0, "d": 4}
    assert counts.latency.count == 6


def test_an_inquiry_travels_with_its_batch(opened):
    inquiry = Inquiry(("a", 0), (SyncRequest(3, 0, epoch=2, estimate=1.5),))
    feed(opened, batch()._replace(inquiry=inquiry), batch())
    asked, silent = consumer(opened).take(100, shared=False)
    assert asked.inquiry == inquiry
    assert silent.inquiry is None


def test_producers_hear_the_newest_word_of_every_replica_once(opened):
    first, second = consumer(opened, 0), consumer(opened, 1)
    producer, other = consumer(opened, operator="a"), consumer(opened, 1, operator="a")
    first.tell([("a", 0), ("a", 1)], SyncReply(0, epoch=1, difference=0.5))
    first.tell([("a", 0)], SyncReply(0, epoch=2, difference=0.25))
    second.tell([("a", 0)], SyncReply(1, epoch=1, difference=0.125))
    assert sorted(producer.hear(), key=str) == [
        ("b", SyncReply(0, epoch=2, difference=0.25)),
        ("b", SyncReply(1, epoch=1, difference=0.125)),
    ]
    assert producer.hear() == []
    assert other.hear() == [("b", SyncReply(0, epoch=1, difference=0.5))]


def test_the_newest_plan_is_the_one_that_everybody_sees(opened):
    first, second = opened(), opened()
    assert second.plan().active == {}
    first.publish(ActivePlan({"b": (0, 1)}, {"b": Utilization((0.5, 0.25), 0.001)}))
    before = second.plan()
    first.publish(ActivePlan({"b": (0,)}))
    assert before.active == {"b": (0, 1)}
    assert before.utilization["b"] == Utilization((0.5, 0.25), 0.001)
    assert second.plan().active == {"b": (0,)}
    assert second.plan().version > before.version


@pytest.mark.parametrize("wake", ["batch", "shared batch", "plan", "dismissal"])
def test_who_waits_is_woken_and_told_whether_there_is_news(opened, wake):
    end = consumer(opened)
    other = opened()
    other.join(("a", 0))
    actions = {
        "batch": lambda: other.commit([], [batch()], Counts()),
        "shared batch": lambda: other.commit([], [batch(replica=SHARED_QUEUE)], Counts()),
        "plan": lambda: other.publish(ActivePlan({"b": (0,)})),
        "dismissal": other.dismiss,
    }
    threading.Timer(0.05, actions[wake]).start()
    started = time.monotonic()
    assert end.wait(30) == (wake in ("plan", "dismissal"))
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("replica", [0, SHARED_QUEUE])
def test_nobody_waits_while_a_take_has_left_something(opened, replica):
    feed(opened, *[batch(replica=replica)] * 2)
    end = consumer(opened)
    started = time.monotonic()
    for _ in range(2):
        taken = end.take(10, shared=replica == SHARED_QUEUE)
        end.commit(taken, [], Counts())
        assert len(taken) == 1
        if end.waiting("b"):
            assert not end.wait(30)
    assert time.monotonic() - started < 20
    assert not end.wait(0.01)


def test_what_is_swept_can_be_joined_again(opened):
    consumer(opened).close()
    opened().sweep()
    end = consumer(opened)
    threading.Timer(0.05, lambda: opened().publish(ActivePlan({"b": (0,)}))).start()
    started = time.monotonic()
    end.wait(30)
    assert time.monotonic() - started < 20


def test_everything_outlives_its_processes(opened):
    feed(opened, batch()).close()
    assert opened().waiting("b") == 10


def _work(transport, folder, replica):
    end = transport(folder)
    end.join(("b", replica))
    while taken := end.take(5, shared=True):
        end.commit(taken, [batch("c", events=one.events) for one in taken], Counts(len(taken)))
    end.close()


@pytest.mark.parametrize("name", TRANSPORTS)
def test_processes_that_work_side_by_side_lose_nothing_and_do_nothing_twice(name, tmp_path):
    transport = TRANSPORTS[name]
    end = transport(tmp_path)
    end.join(("a", 0))
    end.commit([], [batch(replica=SHARED_QUEUE, events=1)] * 300, Counts())
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_work, args=(transport, tmp_path, i)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert end.waiting("b") == 0
    assert end.waiting("c") == 300
    assert sum(counts.processed for counts in end.totals().counts.values()) == 300
    end.close()


def set_aside(opened, *replicas, operator="b"):
    """One dead letter from each of these queues."""
    feed(opened, *[batch(operator, replica, data=b"%d" % replica) for replica in replicas])
    for replica in replicas:
        end = consumer(opened, max(replica, 0), operator)
        (taken,) = end.take(10, shared=replica == SHARED_QUEUE)
        letter = DeadLetter(operator, 10, f"ValueError: {replica}", taken.data)
        assert end.commit([taken], [], Counts(dropped=10), [letter])


def test_dead_letters_are_kept_newest_first(opened):
    set_aside(opened, 0, 1)
    set_aside(opened, 0, operator="c")
    newest, second, first = opened().dead_letters()
    assert (newest.operator, second.operator, first.operator) == ("c", "b", "b")
    assert (first.events, first.error, first.data) == (10, "ValueError: 0", b"0")
    assert 0 < first.time <= second.time
    assert [letter.error for letter in opened().dead_letters("b")] == [second.error, first.error]


def test_dead_letters_go_back_to_the_queues_that_they_came_from(opened):
    set_aside(opened, 0, 1, SHARED_QUEUE)
    end = opened()
    _, *chosen = letters = list(end.dead_letters())
    assert end.retry(chosen) == 2
    assert {name: n for name, n in end.totals().queued.items() if n} == {("b", 0): 10, ("b", 1): 10}
    assert end.retry(letters) == 1
    assert consumer(opened, 0).take(10, shared=True)[0].data == b"%d" % SHARED_QUEUE
    assert list(end.dead_letters()) == []


def test_what_waits_in_queues_that_are_gone_is_gathered(opened):
    feed(opened, *[batch(replica=replica) for replica in (0, 1, 2, 3, SHARED_QUEUE)])
    end = opened()
    end.gather("b", range(2))
    assert {name: n for name, n in end.totals().queued.items() if n} == {("b", 0): 30, ("b", 1): 20}
    end.gather("b", [SHARED_QUEUE])
    assert {name: n for name, n in end.totals().queued.items() if n} == {("b", SHARED_QUEUE): 50}


def test_who_takes_over_dismisses_everybody_and_forgets_why_they_failed(opened):
    left = consumer(opened)
    opened().report_failure(("c", 0), "no database today")
    end = opened()
    end.dismiss([("a", 0)])
    assert (left.owns(), len(end.failures())) == (True, 1)
    end.dismiss()
    assert not left.owns()
    assert end.members() == end.failures() == {}
