"""The record and its model on what Spark really told."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from elastream.engines.attached.progress import Progress
from elastream.engines.attached.record import Look, Record, Work

STARVED = Path(__file__).with_name("starved.jsonl")
"""A query with 16 tasks on eight executors and a trigger interval of 5 s, on a machine whose two
cores were busy with other things: its first batch took 48 s, and all others about 7 s, whatever
their rows. Of two batches nobody knows what their tasks took."""


def recorded(file):
    for line in file.read_text().splitlines():
        told = json.loads(line)
        yield Progress.parsed(json.dumps(told["progress"])), Work(**told["work"]), told


def played(file, every=5.0):
    """The record after every batch, with what it had expected of it."""
    record = Record(every, 0.0, 0.6)
    for progress, work, told in recorded(file):
        executors = frozenset(told["executors"])
        for moment in (progress.began, progress.ended):
            look = Look(moment, executors, told["cores"], progress.start)
            record.look(look)
        model = record.model
        expected = model.seconds(progress.rows, told["cores"]) if model else None
        record.end(progress, work)
        yield record, progress, expected


def test_all_that_spark_tells_can_be_read():
    batches = [progress for progress, *_ in recorded(STARVED)]
    assert [progress.batch for progress in batches] == list(range(len(batches)))
    for before, after in pairwise(batches):
        assert after.start == before.end
        assert after.rows == after.end - after.start
        assert after.began >= before.ended


def test_after_a_few_batches_the_next_is_foretold():
    seen = [(progress, expected) for _, progress, expected in played(STARVED)]
    late = [(progress.seconds, expected) for progress, expected in seen[6:]]
    close = [abs(expected - seconds) <= 0.35 * seconds for seconds, expected in late]
    assert sum(close) >= 0.7 * len(close)


def test_the_first_slow_batch_is_forgotten():
    *_, (record, _, _) = played(STARVED)
    assert record.model.seconds(1000, 8) < 12
    assert record.model.trust > 0.5


def test_rows_are_neither_lost_nor_counted_twice():
    total = sum(progress.rows for progress, *_ in recorded(STARVED))
    *_, (record, progress, _) = played(STARVED)
    record.look(Look(progress.ended + 60, frozenset("0"), 1, progress.end))
    assert record.totals.processed == pytest.approx(total)
    assert record.totals.ended == 16
