"""What every inbox and every outbox must do, whatever carries the events."""

import threading
import time

import pytest

from elastream.engines.spark.backends.base import Counts, StoredBatch
from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED
from elastream.engines.spark.backends.outbox import output_queue
from elastream.engines.spark.backends.sqlite import SqliteInbox, SqliteOutbox, SqliteTransport
from elastream.errors import EngineError

TRANSPORTS = {"sqlite": (SqliteTransport, SqliteInbox, SqliteOutbox)}


@pytest.fixture(params=TRANSPORTS)
def ends(request, tmp_path):
    """A transport, the inbox of its source `in`, and the outbox of its operator `work`."""
    transport, inbox, outbox = TRANSPORTS[request.param]
    opened = transport(tmp_path), inbox(tmp_path, "in"), outbox(tmp_path, "work")
    opened[0].join(("in", 0))
    yield opened
    for end in opened:
        end.close()


def relayed(transport):
    return [batch.data for batch in transport.take(1000, shared=False)]


def test_what_is_staged_is_seen_when_its_batch_is_complete(ends):
    transport, inbox, _ = ends
    inbox.stage("left", 10, b"1")
    inbox.stage("right", 5, b"2")
    inbox.stage("left", 10, b"3")
    assert (inbox.waiting(), relayed(transport)) == (0, [])
    assert inbox.admit(0, {"left": 20, "right": 5})
    assert relayed(transport) == [b"1", b"3", b"2"]
    assert inbox.waiting() == 25
    assert transport.totals().counts["in", 0].processed == 25


def test_a_batch_that_comes_again_is_let_in_once(ends):
    transport, inbox, _ = ends
    assert inbox.admitted() == NOTHING_ADMITTED
    for parcel in ("first", "again"):
        inbox.stage(parcel, 10, parcel.encode())
        assert inbox.admit(7, {parcel: 10}) == (parcel == "first")
    assert relayed(transport) == [b"first"]
    assert inbox.admitted() == 7
    assert transport.totals().counts["in", 0].processed == 10


def test_what_a_failed_task_staged_is_thrown_away(ends):
    transport, inbox, _ = ends
    inbox.stage("failed", 10, b"failed")
    inbox.stage("good", 10, b"good")
    inbox.admit(0, {"good": 10})
    with pytest.raises(EngineError, match="'in': 10 events were staged, and 0 are there"):
        inbox.admit(1, {"failed": 10})
    assert (relayed(transport), inbox.admitted()) == ([b"good"], 0)


def test_what_a_dead_driver_left_is_discarded(ends):
    _, inbox, _ = ends
    inbox.stage("orphan", 10, b"x")
    inbox.discard()
    with pytest.raises(EngineError, match="0 are there"):
        inbox.admit(0, {"orphan": 10})


def test_a_late_repetition_leaves_the_next_batch_alone(ends):
    transport, inbox, _ = ends
    inbox.admit(3, {})
    inbox.stage("next", 10, b"next")
    inbox.stage("late", 10, b"late")
    assert not inbox.admit(3, {"late": 10})
    assert inbox.admit(4, {"next": 10})
    assert relayed(transport) == [b"next"]


def test_who_relays_is_woken(ends):
    transport, inbox, _ = ends
    threading.Timer(0.05, lambda: inbox.admit(0, {})).start()
    started = time.monotonic()
    transport.wait(30)
    assert time.monotonic() - started < 20


def put_out(transport, *data):
    batches = [StoredBatch(output_queue("work"), 0, 10, 1.0, one) for one in data]
    assert transport.commit([], batches, Counts())


def test_an_output_is_read_from_ticket_to_ticket_as_often_as_need_be(ends):
    transport, _, outbox = ends
    assert outbox.newest() == outbox.consumed() == 0
    put_out(transport, b"1", b"2")
    middle = outbox.newest()
    put_out(transport, b"3")
    end = outbox.newest()
    for _ in range(2):
        assert list(outbox.read(0, middle)) == [b"1", b"2"]
        assert list(outbox.read(middle, end)) == [b"3"]


def test_what_is_consumed_is_gone_and_tickets_still_grow(ends):
    transport, _, outbox = ends
    put_out(transport, b"1", b"2")
    end = outbox.newest()
    assert transport.waiting(output_queue("work")) == 20
    outbox.consume(end)
    outbox.consume(end - 1)
    assert outbox.consumed() == outbox.newest() == end
    assert transport.waiting(output_queue("work")) == 0
    put_out(transport, b"3")
    assert outbox.newest() > end
    assert list(outbox.read(end, outbox.newest())) == [b"3"]
