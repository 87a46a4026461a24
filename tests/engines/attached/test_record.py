"""What a record makes of batches: what arrives, what waits, and which interval it follows."""

import pytest

from elastream.engines.attached.progress import Progress
from elastream.engines.attached.record import Look, Record, Totals, Work

EVERY = 5.0
LIMIT = 1000.0


def limited(rates, trigger=EVERY):
    """A record after every batch of a source that gives at most `LIMIT` rows a batch.

    `rates` are the rows per second that arrive in each interval. Before a batch ends, there are two
    looks at it: one when it has begun, and one in its middle.
    """
    record = Record(trigger, 2 * EVERY, 0.6)
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


def after_a_late_batch():
    """A record after 400 rows/s and a batch that took 20 s; nothing is known of what came then."""
    record = Record(EVERY, 2 * EVERY, 0.6)
    read = 0.0
    for number, seconds in enumerate([2.0, 2.0, 2.0, 20.0]):
        began, start, read = EVERY * (number + 1), read, read + 400 * EVERY
        for moment in (0.1, seconds - 0.1):
            record.look(Look(began + moment, frozenset("ab"), 2, read))
        record.end(
            Progress("run", number, began, seconds, 0.5, read - start, start, read, read),
            Work(4, 3.0),
        )
    return record, began + seconds, read


def queued(record):
    return record.stats(Totals(), 2, 2, 5.0).queued


@pytest.mark.parametrize(
    ("there", "wanted", "active", "pending", "draining"),
    [(2, 2, 2, 0, 0), (2, 5, 2, 3, 0), (4, 2, 2, 0, 2), (10, None, 10, 0, 0)],
)
def test_executors_come_and_go(there, wanted, active, pending, draining):
    stats = Record(EVERY, 2 * EVERY, 0.6).stats(Totals(), there, wanted, 5.0)
    assert (stats.active, stats.pending, stats.draining) == (active, pending, draining)
    assert stats.costing == there
    assert stats.planned == (wanted or there)


def test_rows_that_arrive_while_a_batch_is_late_are_expected_to_wait():
    record, _, _ = after_a_late_batch()
    assert queued(record) >= 19 * 400


def test_rows_that_were_expected_and_have_not_come_do_not_wait():
    record, now, read = after_a_late_batch()
    record.look(Look(now + 0.1, frozenset("ab"), 2, read + 200))
    # Those of the late batch are reported as processed over one interval.
    assert queued(record) <= 400 * EVERY + 200


def test_nor_do_they_when_no_batch_follows():
    record, now, read = after_a_late_batch()
    record.look(Look(now + 3 * EVERY, frozenset("ab"), 2, read))
    assert queued(record) == pytest.approx(0)
    assert record.stats(record.totals, 2, 2, 5.0).received == 0


def test_a_batch_has_no_more_rows_than_a_limited_source_gives():
    def most(rates, trigger=EVERY):
        *_, (_, record, _) = limited(rates, trigger)
        return record.stats(Totals(), 2, 2, 5.0).batches.most

    assert most([150.0] * 5 + [400.0] * 4) == LIMIT
    assert most([150.0] * 5) is None
    assert most([400.0] * 3 + [100.0] * 10) is None
    # Without a trigger interval, shorter batches follow one another sooner.
    assert most([400.0] * 5, trigger=0.0) is None


def of_files(waiting, rows=300.0):
    """A record of a source whose offsets count nothing, and which tells what waits, in batches."""
    record = Record(EVERY, 0.0, 0.6)
    for number, left in enumerate(waiting):
        began = EVERY * (number + 1)
        record.look(Look(began + 0.5, frozenset("ab"), 2, batches_waiting=left, running=2))
        progress = Progress("run", number, began, 2.0, 0.5, rows, None, None, None)
        record.end(progress, Work(4, 3.0))
    record.look(Look(began + 5.0, frozenset("ab"), 2, batches_waiting=waiting[-1]))
    return record


def test_files_that_wait_are_queued():
    stats = of_files([7.0, 6.0, 5.0, 4.0]).stats(Totals(), 2, 2, 5.0)
    assert 4 * 300 <= stats.queued <= 5 * 300
    assert stats.batches.most == 300
    assert of_files([4.0, 3.0, 2.0]).rate == pytest.approx(300 / EVERY)


def test_when_no_file_waits_nothing_is_queued():
    stats = of_files([0.0, 0.0, 0.0]).stats(Totals(), 2, 2, 5.0)
    assert stats.queued <= 300
    assert stats.batches.most is None


def test_a_query_that_is_restarted_with_another_interval_is_measured_by_it():
    record = Record(EVERY, 10.0, 0.6)
    record.follow(20.0)
    assert (record.every, record.within) == (20.0, 12.0)
    record.follow(0.0)
    assert (record.every, record.within) == (5.0, 3.0)


def steady(rate):
    """A record of batches of so many rows a second."""
    return after([rate] * 8)


def after(rates):
    """A record of batches, each of so many rows a second: 0.5 s, and 10 ms a row, on two cores."""
    record, read = Record(EVERY, 0.0, 0.65), 0.0
    for number, rate in enumerate(rates):
        began, start, read = EVERY * (number + 1), read, read + rate * EVERY
        seconds = 0.5 + rate * EVERY * 0.01 / 2
        record.look(Look(began + 0.1, frozenset("ab"), 2, read))
        progress = Progress("run", number, began, seconds, 0.5, read - start, start, read, read)
        record.end(progress, Work(16, rate * EVERY * 0.01))
    return record


@pytest.mark.parametrize(
    ("now", "leads", "wait"),
    [
        pytest.param(0.5, (3.0, 3.0), 0.0, id="it comes when the batch is over"),
        pytest.param(0.5, (2.4, 2.4), 0.0, id="when the last tasks have begun"),
        pytest.param(0.5, (1.5, 1.5), 0.84, id="in a batch that is over before it is of use"),
        pytest.param(3.5, (3.0, 3.0), 1.34, id="in the middle of the next one"),
        pytest.param(0.2, (0.5, 0.5), 0.0, id="early enough to be of use"),
        pytest.param(0.2, (1.2, 1.2), 1.44, id="of use only if its first task is quick"),
        pytest.param(0.5, (1.5, 3.0), 0.84, id="at the earliest in a batch, usually after it"),
        pytest.param(
            2.0, (2.5, 3.5), 3.34, id="at the earliest before the next one, usually in it"
        ),
        pytest.param(0.5, (1.5, 4.5), 0.0, id="it may come in any part of a batch"),
    ],
)
def test_executors_are_asked_for_so_that_they_come_between_batches(now, leads, wait):
    # A batch of 500 rows takes 3 s, and its last tasks 0.31 s.
    assert steady(100.0).wait_before_asking(1000.0 + now, leads) == pytest.approx(wait, abs=0.01)


@pytest.mark.parametrize(
    ("rates", "now", "wait"),
    [
        # After 450 rows in 2.75 s, a batch of 675 rows takes 3.88 s, and its last tasks 0.42 s.
        pytest.param([60.0] * 7 + [90.0], 3.5, 2.16, id="in the next batch, which is longer"),
        pytest.param([60.0] * 7 + [90.0], 4.9, 0.76, id="in the one that is about to begin"),
        pytest.param([60.0] * 7 + [90.0], 0.5, 0.0, id="after the one that is at work"),
        pytest.param([120.0] * 7 + [90.0], 3.5, 1.11, id="in one that is not expected shorter"),
        pytest.param([20.0] * 7 + [80.0], 3.5, 2.75, id="in one of twice as many rows at most"),
    ],
)
def test_while_the_input_rises_the_next_batch_is_expected_to_be_longer(rates, now, wait):
    leads = (2.3, 2.3) if now < 1 else (3.0, 3.0)
    assert after(rates).wait_before_asking(1000.0 + now, leads) == pytest.approx(wait, abs=0.01)


def test_nothing_is_put_off_while_batches_are_late_or_unknown_or_follow_one_another_at_once():
    assert steady(190.0).wait_before_asking(1000.5, (1.5, 1.5)) == 0.0
    assert Record(EVERY, 0.0, 0.65).wait_before_asking(1000.5, (1.5, 1.5)) == 0.0
    at_once = steady(100.0)
    at_once.follow(0.0)
    assert at_once.wait_before_asking(1000.5, (1.5, 1.5)) == 0.0


def watched(moments):
    """A record of looks at these moments; the two executors are busy for the first 4 s of 5."""
    record = Record(EVERY, 0.0, 0.65)
    record.look(Look(0.0, frozenset("ab"), 2))
    counts = [record.totals]
    for moment in moments:
        busy = (moment - 1e-9) % EVERY < 4.0
        record.look(Look(moment, frozenset("ab"), 2, running=2 * busy, waiting=3 * busy))
        counts.append(record.totals)
    return record, counts


def test_tasks_count_by_how_long_they_were_seen_not_by_how_often():
    """While a batch is at work, looks are further apart."""
    record, _ = watched([1.0, 2.0, 3.0, 4.0, 4.25, 4.5, 4.75, 5.0])
    stats = record.stats(Totals(), 2, 2, 5.0)
    assert stats.batches.running == pytest.approx(0.8 * 2)
    assert stats.batches.waiting == pytest.approx(0.8 * 3)


def test_tasks_are_averaged_over_at_least_one_trigger_interval():
    record, counts = watched([float(moment) for moment in range(1, 16)])
    for seconds in (1, 2, 5, 10):
        stats = record.stats(counts[-1 - seconds], 2, 2, 5.0)
        assert stats.batches.running == pytest.approx(0.8 * 2), seconds


def test_a_sample_that_is_longer_than_a_trigger_interval_counts_all_batches_that_began_in_it():
    record, read, counts = Record(EVERY, 0.0, 0.65), 0.0, []
    for number, rate in enumerate([100.0, 100.0, 100.0, 100.0, 200.0, 600.0]):
        began, start, read = EVERY * (number + 1), read, read + rate * EVERY
        record.look(Look(began + 0.1, frozenset("ab"), 2, read))
        counts.append(record.totals)
        progress = Progress("run", number, began, 2.0, 0.5, read - start, start, read, read)
        record.end(progress, Work(4, 3.0))
    two, shorter = 2 * EVERY, EVERY / 2
    assert record.sample(counts[-3], two, two) == pytest.approx((200 + 600) * EVERY)
    assert record.sample(counts[-3], two, two + 0.1) == pytest.approx(400 * (two + 0.1))
    assert record.sample(counts[-2], shorter, shorter) == pytest.approx(600 * shorter)
    assert record.sample(record.totals, two, two) == pytest.approx(600 * two), "a late batch"
    for moment in range(45, 65):
        record.look(Look(float(moment), frozenset("ab"), 2, read))
        counts.append(record.totals)
    assert record.sample(counts[-11], two, two) == 0
