"""The replica's side of the grouping `osg` on Spark (DABS-Storm section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.core.groupings.base import SketchReport, SyncReply, SyncRequest
from elastream.core.groupings.osg import Osg
from elastream.core.groupings.osg_replica import OsgReplica
from elastream.core.topology import Topology
from elastream.engines.spark.backends.base import ReplicaName, StoredBatch, Transport
from elastream.engines.spark.worker.execution import Execution, Work


class Sketcher:
    """Runs the function value by value, and tells producers what values cost this replica."""

    def __init__(self, topology: Topology, name: ReplicaName, transport: Transport) -> None:
        operator = topology.by_name[name[0]]
        assert isinstance(operator.router, Osg)
        assert operator.key is not None
        self._key = operator.key
        self._number = name[1]
        self._transport = transport
        self._sketches = OsgReplica.start(name[1], operator.router.family)
        self._producers = list(_producers(topology, operator.name))
        self._done: list[tuple[NDArray[Any], NDArray[np.float64]]] = []

    def run(self, table: pa.Table, execution: Execution, work: Work) -> None:
        """Run the function on the events of each value, as only so it shows what a value costs."""
        keys = table.column(self._key).to_numpy()
        seconds = np.zeros(len(keys))
        _, groups = np.unique(keys, return_inverse=True)
        for group in range(groups.max() + 1):
            places, before = np.flatnonzero(groups == group), work.busy
            execution.run(table.take(places), work)
            seconds[places] = (work.busy - before) / len(places)
        self._done.append((keys, seconds))

    def report(self, batches: Sequence[StoredBatch]) -> None:
        """Learn from what was run for these batches, and tell whoever wants to know."""
        keys, seconds = (np.concatenate(parts) for parts in zip(*self._done, strict=True))
        self._done = []
        asked = list(_asked(batches, self._number))
        requests = [request for _, request in asked]
        self._sketches, told = self._sketches.execute(keys, seconds, requests)
        replies = [feedback for feedback in told if isinstance(feedback, SyncReply)]
        for (producer, _), reply in zip(asked, replies, strict=True):
            self._transport.tell([producer], reply)
        for feedback in told:
            if isinstance(feedback, SketchReport):
                self._transport.tell(self._producers, feedback)


def _producers(topology: Topology, operator: str) -> Iterator[ReplicaName]:
    for edge in topology.incoming[operator]:
        origin = topology.by_name.get(edge.origin)
        for number in range(origin.pool if origin else 1):
            yield edge.origin, number


def _asked(
    batches: Sequence[StoredBatch], number: int
) -> Iterator[tuple[ReplicaName, SyncRequest]]:
    """The requests to this replica, with the positions of their events among all batches."""
    before = 0
    for batch in batches:
        if batch.inquiry:
            for request in batch.inquiry.requests:
                if request.replica == number:
                    place = before + request.position
                    yield batch.inquiry.producer, replace(request, position=place)
        before += batch.events
