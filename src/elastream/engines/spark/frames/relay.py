"""The relay: hands what waits in a source's inbox on to the source's successors."""

from __future__ import annotations

from time import monotonic

import pyarrow as pa

from elastream.core.topology import Topology
from elastream.engines.spark.emission import Emitter
from elastream.engines.spark.events import from_bytes
from elastream.engines.spark.transport.base import ActivePlan, Counts, StoredBatch, Transport

LOOK_SECONDS = 0.1
FULL_SECONDS = 0.02
MOST_EVENTS = 2_000


class Relay:
    """Works for one source, from where it stopped before."""

    def __init__(
        self, name: str, topology: Topology, transport: Transport, queue_size: int
    ) -> None:
        self._name = name
        self._transport = transport
        self._queue_size = queue_size
        edges = topology.outgoing[name]
        self._successors = [edge.target for edge in edges]
        self._emitter = Emitter(edges, topology.by_name)
        self._plan = ActivePlan({}, version=-1)

    def run(self) -> None:
        """Hand on, until another process takes this one's place, or all are dismissed."""
        self._transport.join((self._name, 0))
        looked = 0.0
        while True:
            if monotonic() - looked > LOOK_SECONDS:
                if not self._transport.owns():
                    return
                looked, self._plan = monotonic(), self._transport.plan()
            if not self._room():
                self._transport.wait(FULL_SECONDS)
            elif batches := self._transport.take(MOST_EVENTS, shared=False):
                self._hand_on(batches)
            else:
                self._transport.wait(LOOK_SECONDS)

    def _room(self) -> bool:
        return bool(self._plan.active) and all(
            self._transport.waiting(name) < self._queue_size for name in self._successors
        )

    def _hand_on(self, batches: list[StoredBatch]) -> None:
        table = pa.concat_tables([from_bytes(batch.data) for batch in batches])
        born = sum(batch.born * batch.events for batch in batches) / table.num_rows
        results, sent = self._emitter.emit(table, born, self._plan.active)
        # They were counted as arrived when they were admitted.
        self._transport.commit(batches, results, Counts(emitted=table.num_rows, sent=sent))
