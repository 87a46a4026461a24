"""What a record makes of batches: what arrives, what waits, and which interval it follows."""

import pytest

from elastream.engines.attached.progress import Progress
from elastream.engines.attached.record import Look, Record, Work

EVERY = 5.0
LIMIT = 1000.0


def limited(rates):
    """A record after every batch of a source that gives at most `LIMIT` rows a batch.

    `rates` are the rows per second that arrive in each interval. Before a batch ends, there are two
    looks at it: one when it has begun, and one in its middle.
    """
    record = Record(EVERY, 0.0, 0.6)
    read = latest = 0.0
    for number, rate in enumerate(rates):
        latest += rate * EVERY
        began = EVERY * (number + 1)
        start, read = read, min(read + LIMIT, latest)
        for moment in (0.1, 1.0):
            record.look(Look(began + moment, frozenset("ab"), 2, read))
            yield "works", record, latest - read
        progress = Progress("run", number, began, 2.0, 0.5, read - start, start, read, latest)
        record.end(progress, Work(4, 3.0))
        yield "ended", record, latest - read


def test_what_arrives_is_known_although_the_source_is_limited():
    rates = [record.rate for _, record, _ in limited([150.0] * 5 + [400.0] * 10)]
    assert rates[-20:] == pytest.approx([400.0] * 20)


def test_what_waits_at_the_source_is_queued():
    told = [
        (record.totals.received - record.totals.processed, waits)
        for when, record, waits in limited([150.0] * 5 + [400.0] * 10)
        if when == "ended"
    ]
    for queued, waits in told[6:]:
        # The rows of the last batch are reported as processed over one interval.
        assert waits <= queued <= waits + LIMIT
    assert told[-1][1] == 10_000


def test_when_the_source_has_caught_up_nothing_waits_and_the_rate_is_that_of_the_input():
    *_, (_, record, waits) = limited([150.0] * 3 + [400.0] * 3 + [100.0] * 10)
    assert waits == 0
    assert record.rate == pytest.approx(100.0)
    record.look(Look(1e4, frozenset("ab"), 2, None))
    assert record.totals.received == pytest.approx(record.totals.processed)


def test_a_query_that_is_restarted_with_another_interval_is_measured_by_it():
    record = Record(EVERY, 10.0, 0.6)
    record.follow(20.0)
    assert (record.every, record.within) == (20.0, 12.0)
    record.follow(0.0)
    assert (record.every, record.within) == (5.0, 3.0)
