"""Writes `state_v1.sql`: a state as elastream left it before there were lanes.

    git checkout 45da67a
    python make_state_v1.py

It needs the package of that time. What it makes is kept, so that a test can bring it up to date for
as long as version 1 is supported.
"""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from elastream.core.groupings import SHARED_QUEUE
from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.base import ActivePlan, Counts, DeadLetter, StoredBatch
from elastream.engines.spark.backends.sqlite import SqliteInbox, SqliteOutbox, SqliteTransport

PIPELINE = "words: in -> work, work -> pulled"
KEYS = 5


def batch(operator, replica, numbers):
    """Events that wait in the queue of a replica."""
    data = to_bytes(pa.table({"n": numbers, "key": [n % KEYS for n in numbers]}))
    return StoredBatch(operator, replica, len(numbers), 100.0 + numbers[0], data)


def fill(folder):
    """A backlog, part of it taken; counts, a dead letter, an admission, an output."""
    source, worker = SqliteTransport(folder, 1), SqliteTransport(folder, 1)
    source.claim(PIPELINE)
    source.publish(ActivePlan({"work": (0, 1, 2), "pulled": (0,)}))
    source.join(("in", 0))
    sent = [batch("work", n % 3, [10 * n + each for each in range(10)]) for n in range(6)]
    assert source.commit([], sent, Counts(60, 60, sent={"work": 60}))
    worker.join(("work", 0))
    done = worker.take(10, shared=False)
    results = [batch("pulled", SHARED_QUEUE, [n]) for n in (60, 61)]
    outputs = [batch("work:output", 0, [n]) for n in (62, 63)]
    counts = Counts(
        10, 2, busy=0.5, cpu=0.25, sent={"pulled": 2}, latency=LatencyHistogram({500: 8})
    )
    letter = DeadLetter("work", 1, "ValueError: no", batch("work", 0, [64]).data)
    assert worker.commit(done, [*results, *outputs], counts, [letter])
    shared = SqliteTransport(folder, 1)
    shared.join(("pulled", 0))
    assert shared.take(1, shared=True), "a killed run does not give back what it took"
    with closing(SqliteInbox(folder, "in")) as inbox, closing(SqliteOutbox(folder, "work")) as out:
        inbox.stage("task", 1, batch("in", 0, [65]).data)
        inbox.admit(41, {"task": 1})
        assert len(list(out.read(0, out.newest()))) == 2
        out.consume(out.newest() - 1)
    for each in (source, worker, shared):
        each.close()
    source.sweep()


def main():
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        with closing(sqlite3.connect(Path(folder) / "elastream.db")) as db:
            script = "\n".join(db.iterdump())
            assert db.execute("PRAGMA user_version").fetchone() == (1,)
    target = Path(__file__).with_name("state_v1.sql")
    target.write_text(f"{script}\nPRAGMA user_version = 1;\n")


if __name__ == "__main__":
    main()
