"""What every inbox and every outbox must do, whatever carries the events."""

import threading
import time
from contextlib import ExitStack, closing

import pytest

from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.errors import EngineError
from support.backends import BACKENDS

pytestmark = pytest.mark.quick_on_kafka


@pytest.fixture(params=BACKENDS)
def ends(request, tmp_path):
    """The source `in`, which has joined, its inbox, and the outbox of the operator `work`."""
    backend = BACKENDS[request.param](tmp_path)
    backend.prepare("test", {"in": OperatorLanes(1), "work": OperatorLanes(2)})
    with ExitStack() as undo:
        source = undo.enter_context(backend.connect())
        source.lanes.join(("in", 0), 1)
        source.lanes.hold(frozenset({0}))
        inbox = undo.enter_context(closing(backend.inbox("in")))
        outbox = undo.enter_context(closing(backend.outbox("work")))
        yield source, inbox, outbox
    backend.sweep()


def relayed(source):
    return [taken.data for taken in source.lanes.take(1000)]


def test_what_is_staged_is_seen_when_its_batch_is_complete(ends):
    source, inbox, _ = ends
    before = time.time()
    inbox.stage("left", 10, b"1")
    inbox.stage("right", 5, b"2")
    inbox.stage("left", 10, b"3")
    assert (inbox.waiting(), relayed(source)) == (0, [])
    assert inbox.admit(0, {"left": 20, "right": 5})
    assert relayed(source) == [b"1", b"3", b"2"]
    assert inbox.waiting() == 25
    assert source.ledger.counts(("in", 0)).processed == 25
    births = Births.joined(taken.births for taken in source.lanes.take(1000)).times()
    assert len(births) == 25
    assert before <= min(births) <= max(births) <= time.time(), "an event arrives when it is let in"


def test_what_the_source_has_handed_on_does_not_wait_any_more(ends):
    source, inbox, _ = ends
    inbox.stage("one", 10, b"1")
    inbox.admit(0, {"one": 10})
    assert source.lanes.commit(source.lanes.take(1000), [], Counts(emitted=10))
    assert inbox.waiting() == 0


def test_a_batch_that_comes_again_is_let_in_once(ends):
    source, inbox, _ = ends
    assert inbox.admitted() == NOTHING_ADMITTED
    for name in ("first", "again"):
        inbox.stage(name, 10, name.encode())
        assert inbox.admit(7, {name: 10}) == (name == "first")
    assert not inbox.admit(6, {})
    assert relayed(source) == [b"first"]
    assert inbox.admitted() == 7
    assert source.ledger.counts(("in", 0)).processed == 10


def test_what_a_failed_task_staged_is_thrown_away(ends):
    source, inbox, _ = ends
    inbox.stage("failed", 10, b"failed")
    inbox.stage("good", 10, b"good")
    inbox.admit(0, {"good": 10})
    with pytest.raises(EngineError, match="'in': 10 events were staged, and 0 are there"):
        inbox.admit(1, {"failed": 10})
    assert (relayed(source), inbox.admitted()) == ([b"good"], 0)


def test_a_batch_is_let_in_whole_or_not_at_all(ends):
    source, inbox, _ = ends
    inbox.stage("there", 10, b"there")
    with pytest.raises(EngineError, match="5 events were staged, and 0 are there"):
        inbox.admit(0, {"there": 10, "lost": 5})
    assert (relayed(source), inbox.waiting(), inbox.admitted()) == ([], 0, NOTHING_ADMITTED)
    assert source.ledger.counts(("in", 0)).processed == 0
    assert inbox.admit(0, {"there": 10})
    assert relayed(source) == [b"there"]


def test_what_a_dead_driver_left_is_discarded(ends):
    _, inbox, _ = ends
    inbox.stage("orphan", 10, b"x")
    inbox.discard()
    with pytest.raises(EngineError, match="0 are there"):
        inbox.admit(0, {"orphan": 10})


def test_a_late_repetition_leaves_the_next_batch_alone(ends):
    source, inbox, _ = ends
    inbox.admit(3, {})
    inbox.stage("next", 10, b"next")
    inbox.stage("late", 10, b"late")
    assert not inbox.admit(3, {"late": 10})
    assert inbox.admit(4, {"next": 10})
    assert relayed(source) == [b"next"]


def test_who_relays_is_woken(ends):
    source, inbox, _ = ends
    source.lanes.wait(0.0)
    started = time.monotonic()
    assert not source.lanes.wait(0.15)
    assert time.monotonic() - started > 0.14, "nobody has let anything in yet"
    inbox.stage("one", 1, b"1")
    threading.Timer(0.05, lambda: inbox.admit(0, {"one": 1})).start()
    started = time.monotonic()
    source.lanes.wait(30)
    assert time.monotonic() - started < 15


def put_out(source, *data):
    parcels = [Parcel(output_of("work"), 0, 10, Births.evenly(10, 1.0), each) for each in data]
    assert source.lanes.commit([], parcels, Counts())


def waiting(source):
    return source.ledger.totals().waiting(output_of("work"))


def test_an_output_is_read_from_number_to_number_as_often_as_need_be(ends):
    source, _, outbox = ends
    assert outbox.newest() == outbox.consumed() == 0
    put_out(source, b"1", b"2")
    middle = outbox.newest()
    put_out(source, b"3")
    end = outbox.newest()
    for _ in range(2):
        assert list(outbox.read(0, middle)) == [b"1", b"2"]
        assert list(outbox.read(middle, end)) == [b"3"]


def test_what_is_consumed_is_gone_and_numbers_still_grow(ends):
    source, _, outbox = ends
    put_out(source, b"1", b"2")
    end = outbox.newest()
    assert waiting(source) == 20
    outbox.consume(end)
    outbox.consume(end - 1)
    assert outbox.consumed() == outbox.newest() == end
    assert waiting(source) == 0
    assert list(outbox.read(0, end)) == []
    put_out(source, b"3")
    assert outbox.newest() > end
    assert list(outbox.read(end, outbox.newest())) == [b"3"]
    assert waiting(source) == 10


def test_sources_and_operators_do_not_see_each_others_ends(ends):
    source, inbox, outbox = ends
    put_out(source, b"1")
    inbox.stage("one", 1, b"2")
    inbox.admit(0, {"one": 1})
    assert relayed(source) == [b"2"]
    assert list(outbox.read(0, outbox.newest())) == [b"1"]
