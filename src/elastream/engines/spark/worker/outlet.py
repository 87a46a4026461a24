"""The outlet: where a member's events leave it for its successors' queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import NamedTuple

import pyarrow as pa

from elastream.core.topology import Topology
from elastream.engines.base import WhenFull
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.base import NO_PLAN, ReplicaName, StoredBatch, Transport
from elastream.engines.spark.backends.outbox import output_queue
from elastream.engines.spark.options import Handling
from elastream.engines.spark.worker.events import together
from elastream.engines.spark.worker.routing import Emitter

LOOK_SECONDS = 0.2
"""How often a member that is busy looks for news."""
PARTS = 8
"""Of the room in a queue, a producer takes one of so many before it looks again."""


class Emission(NamedTuple):
    """What is ready to be committed."""

    batches: tuple[StoredBatch, ...]
    sent: Mapping[str, int]
    """Events per successor."""
    lost: Mapping[str, int]
    """Those among them that found no room, and were dropped."""


class Outlet:
    """Knows the newest plan, what replicas of successors tell, and whether there is room."""

    def __init__(
        self,
        name: ReplicaName,
        topology: Topology,
        transport: Transport,
        handling: Handling,
        put_out: bool = False,
    ) -> None:
        edges = topology.outgoing[name[0]]
        self.plan = NO_PLAN
        self.successors = [edge.target for edge in edges]
        self._transport = transport
        self._handling = handling
        self._emitter = Emitter(name, edges, topology.by_name)
        self._outbox = output_queue(name[0]) if put_out else None
        self._waited_for = [] if handling.on_full is WhenFull.DROP else list(self.successors)
        self._waited_for += [self._outbox] if self._outbox else []
        self._free = 0.0
        """How many events may leave before the queues are looked at again."""
        self._looked = 0.0

    def look(self) -> bool:
        """Look for news now and then; False when somebody else acts for this member."""
        if monotonic() - self._looked < LOOK_SECONDS:
            return True
        self._looked, self._free = monotonic(), 0.0
        newest = self._transport.plan(self.plan)
        if newest is not self.plan:
            self.plan = newest
            self._emitter.follow(newest)
        if self._emitter.listens:
            for name, feedback in self._transport.hear():
                self._emitter.learn(name, feedback)
        return self._transport.owns()

    def wait(self, seconds: float) -> None:
        """Sleep until there is something to do, but no longer than that; heed news at once."""
        if self._transport.wait(seconds):
            self._looked = 0.0

    def room(self) -> bool:
        """Whether events may leave: there is a plan, and no queue to wait for is full."""
        if self._free <= 0:
            # Others fill the queues, too: look again when a part of the room is used up.
            self._free = min(map(self._space, self._waited_for), default=self._handling.queue_size)
            self._free = self._free / PARTS if self._free > 0 else 0.0
        return bool(self.plan.active) and self._free > 0

    def divide(self, table: pa.Table) -> dict[str, pa.Table]:
        """The events for each queue; an error when they are not what a successor expects."""
        parts = self._emitter.divide(table)
        return {**parts, self._outbox: table} if self._outbox else parts

    def emission(self, divided: Sequence[Mapping[str, pa.Table]], born: float) -> Emission:
        """Route what was divided."""
        batches: list[StoredBatch] = []
        sent: dict[str, int] = {}
        lost: dict[str, int] = {}
        for name in self.successors:
            parts = [tables[name] for tables in divided]
            sent[name] = sum(part.num_rows for part in parts)
            if self._handling.on_full is WhenFull.DROP and self._space(name) <= 0:
                lost[name] = sent[name]
                continue
            for part in together(parts):
                batches += self._emitter.route(name, part, born)
        if self._outbox:
            for part in together([tables[self._outbox] for tables in divided]):
                batches.append(StoredBatch(self._outbox, 0, part.num_rows, born, to_bytes(part)))
        self._free -= sum(batch.events for batch in batches)
        return Emission(tuple(batch for batch in batches if batch.events), sent, lost)

    def _space(self, queue: str) -> int:
        return self._handling.queue_size - self._transport.waiting(queue)
