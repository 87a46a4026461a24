"""A driver takes over what a run that was killed has left."""

import pyarrow as pa
import pytest

from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.births import Births
from support.memory_backend import MemoryBackend

PIPELINE = "p: in -> work"


@pytest.mark.parametrize("kind", [SqliteBackend, lambda folder: MemoryBackend(str(folder))])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OperatorLanes(8), OperatorLanes(8)),
        (OperatorLanes(8), OperatorLanes(4)),
        (OperatorLanes(8, shared=True), OperatorLanes(8, shared=True)),
        (OperatorLanes(8, shared=True), OperatorLanes(4)),
    ],
    ids=["the same", "a smaller pool", "shared", "not shared any more"],
)
def test_the_event_that_killed_a_run_is_suspected_whatever_lanes_the_next_one_has(
    tmp_path, kind, before, after
):
    backend = kind(tmp_path / "state")
    backend.prepare(PIPELINE, {"work": before})
    lane = SHARED_LANE if before.shared else 0
    data = to_bytes(pa.table({"n": [1]}))
    with backend.connect() as end:
        end.lanes.join(("work", 0), 1)
        end.lanes.hold(frozenset() if before.shared else frozenset({0}))
        end.lanes.commit([], [Parcel("work", lane, 1, Births.evenly(1, 1.0), data)], Counts())
        assert end.lanes.take(10, before.shared)
        backend.take_over()
        backend.prepare(PIPELINE, {"work": after})
        assert not end.lanes.joined()
        assert end.board.members() == {}
    with backend.connect() as end:
        end.lanes.join(("work", 0), 2)
        end.lanes.hold(frozenset() if after.shared else frozenset(range(after.lanes)))
        (taken,) = end.lanes.take(10, after.shared)
    backend.sweep()
    assert taken.deaths == 1
