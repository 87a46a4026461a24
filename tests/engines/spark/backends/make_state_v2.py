"""Writes `state_v2.sql`: a state as elastream left it when its tables had version 2.

    git checkout 751c75b
    python -m tests.engines.spark.backends.make_state_v2

It needs the package of that time, and says so where it finds another. What it makes is kept, so
that a test can bring it up to date for as long as version 2 is supported.
"""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite import SqliteBackend, versions
from elastream.engines.spark.births import Births

PIPELINE = "words: in -> work, work -> pulled"
LAYOUT = {
    "in": OperatorLanes(1),
    "work": OperatorLanes(4, key="n"),
    "pulled": OperatorLanes(2, shared=True),
}


def parcel(operator, numbers, lane_of):
    births = Births.evenly(len(numbers), 100.0)
    data = to_bytes(pa.table({"n": numbers}))
    return Parcel.for_lanes(operator, np.array(lane_of), births, data)


def fill(backend):
    """A backlog, part of it done; counts, a dead letter, an admission, an output, shared events."""
    backend.prepare(PIPELINE, LAYOUT)
    with backend.connect() as producer, backend.connect() as worker:
        producer.lanes.join(("in", 0), 1)
        sent = [parcel("work", [0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 0, 1]), parcel("work", [6], [3])]
        outputs = [parcel(output_of("work"), [n], [0]) for n in (7, 8)]
        births, data = Births.evenly(2, 100.0), to_bytes(pa.table({"n": [9, 10]}))
        shared = Parcel("pulled", SHARED_LANE, 2, births, data)
        counts = Counts(7, 7, sent={"work": 7})
        assert producer.lanes.commit([], [*sent, *outputs, shared], counts)
        worker.lanes.join(("work", 0), 1)
        worker.lanes.hold(frozenset({0}))
        taken = worker.lanes.take(2)
        letter = DeadLetter("work", 1, "ValueError: no", to_bytes(pa.table({"n": [11]})), 1)
        assert worker.lanes.commit(taken, [], Counts(len(taken)), [letter])
    with closing(backend.inbox("in")) as inbox, closing(backend.outbox("work")) as outbox:
        inbox.stage("task", 1, to_bytes(pa.table({"n": [12]})))
        inbox.admit(41, {"task": 1})
        outbox.newest()
        outbox.consume(1)


def main(version=2):
    if version != versions.NEWEST:
        raise SystemExit(f"this elastream makes version {versions.NEWEST}: check out an older one")
    with tempfile.TemporaryDirectory() as folder:
        backend = SqliteBackend(Path(folder) / "state")
        fill(backend)
        with closing(sqlite3.connect(backend.folder / "elastream.db")) as db:
            script = "\n".join(db.iterdump())
        backend.sweep()
    target = Path(__file__).with_name(f"state_v{version}.sql")
    target.write_text(f"{script}\nPRAGMA user_version = {version};\n")


if __name__ == "__main__":
    main()
