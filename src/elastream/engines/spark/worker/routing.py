"""From an operator's output to batches in its successors' queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.core.groupings import Batch, Grouping
from elastream.core.groupings.base import Feedback, Indices, Routing, SyncRequest, Utilization
from elastream.core.groupings.osg import Osg
from elastream.core.topology import Edge, Operator
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.base import ActivePlan, Inquiry, ReplicaName, StoredBatch

UNIT = 18
"""About so many events stay together when no key parts them: else batches go to pieces."""
_GOLDEN = 0.6180339887498949
"""Multiples of it are spread evenly over [0, 1), however many are taken."""


class Emitter:
    """Chooses, for one producer, the edges and replicas that its events take."""

    def __init__(
        self, producer: ReplicaName, edges: Sequence[Edge], targets: Mapping[str, Operator]
    ) -> None:
        self._producer = producer
        self._edges = tuple(edges)
        self._targets = targets
        self._routers: dict[str, Grouping[Any]] = {
            e.target: targets[e.target].router for e in edges
        }
        self._states = {
            name: router.start(targets[name].pool, producer[1])
            for name, router in self._routers.items()
        }
        self._choosy = [name for name in self._routers if targets[name].needs]
        self._active: dict[str, Indices] = {}
        self._whole = all(edge.when is None and edge.share is None for edge in edges)
        self._position = 0

    @property
    def listens(self) -> bool:
        """Whether a grouping wants to hear from replicas."""
        return any(isinstance(router, Osg) for router in self._routers.values())

    def state(self, target: str) -> Any:
        """What the grouping of a successor remembers."""
        return self._states[target]

    def follow(self, plan: ActivePlan) -> None:
        """From now on, send to the replicas that are active in this plan."""
        for name in self._routers:
            if name in plan.active:
                self._active[name] = np.array(plan.active[name])
            if name in plan.utilization:
                self.learn(name, plan.utilization[name])

    def learn(self, target: str, feedback: Feedback) -> None:
        """Hand a grouping what replicas report; where units are routed, a unit is its event."""
        if isinstance(feedback, Utilization) and not self._targets[target].key:
            feedback = replace(feedback, per_event=UNIT * feedback.per_event)
        self._states[target] = self._routers[target].learn(self._states[target], feedback)

    def divide(self, table: pa.Table) -> dict[str, pa.Table]:
        """The events for each successor; an error when they are not what its edge expects."""
        if self._whole or not table.num_rows:
            parts = dict.fromkeys(self._routers, table)
        else:
            parts = {edge.target: part for edge, part in self._parts(table)}
        for target in self._choosy:
            if parts[target].num_rows:
                self._targets[target].check_columns(parts[target].column_names, self._producer[0])
        return parts

    def _parts(self, table: pa.Table) -> Iterator[tuple[Edge, pa.Table]]:
        """What takes each edge: all, what matches, or a slice of [0, 1) as wide as its share."""
        places: NDArray[np.float64] | None = None
        start = 0.0
        for edge in self._edges:
            if edge.when is not None:
                yield edge, table.filter(_mask(edge.when(table)))
            elif edge.share is not None:
                if places is None:
                    numbers = np.arange(self._position, self._position + table.num_rows)
                    places = numbers * _GOLDEN % 1.0
                    self._position += table.num_rows
                end = start + edge.share
                yield edge, table.filter(pa.array((places >= start) & (places < end)))
                start = end
            else:
                yield edge, table

    def route(self, target: str, table: pa.Table, born: float) -> Iterator[StoredBatch]:
        """The batches for a successor's replicas."""
        if not table.num_rows:
            return
        routing = self._routing(target, table)
        if len(routing.replicas) == 1:
            # One unit, or one event: as it is, and that is often.
            inquiry = Inquiry(self._producer, routing.requests) if routing.requests else None
            replica = int(routing.replicas[0])
            yield StoredBatch(target, replica, table.num_rows, born, to_bytes(table), inquiry)
            return
        each = -(-table.num_rows // len(routing.replicas))
        chosen = np.repeat(routing.replicas, each)[: table.num_rows]
        for replica in np.unique(chosen).tolist():
            mine = chosen == replica
            part = table if mine.all() else table.filter(pa.array(mine))
            inquiry = self._inquiry(replica, mine, routing.requests)
            yield StoredBatch(target, replica, part.num_rows, born, to_bytes(part), inquiry)

    def _routing(self, target: str, table: pa.Table) -> Routing[Any]:
        """A replica for every event; without a key, for every unit of events."""
        key = self._targets[target].key
        if key:
            batch = Batch.of(table.column(key).to_numpy())
        else:
            batch = Batch(max(round(table.num_rows / UNIT), 1))
        routing = self._routers[target].route(self._states[target], batch, self._active[target])
        self._states[target] = routing.state
        return routing

    def _inquiry(
        self, replica: int, mine: NDArray[np.bool_], requests: Sequence[SyncRequest]
    ) -> Inquiry | None:
        """What travels with a replica's events; positions count them alone."""
        asked = tuple(
            replace(request, position=int(mine[: request.position].sum()))
            for request in requests
            if request.replica == replica
        )
        return Inquiry(self._producer, asked) if asked else None


def _mask(matches: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(matches, pa.Array | pa.ChunkedArray):
        return matches
    return pa.array(np.asarray(matches, dtype=bool))
