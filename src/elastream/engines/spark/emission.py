"""From an operator's output to batches in its successors' queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.core.groupings import Batch, Grouping
from elastream.core.groupings.base import Feedback, Utilization
from elastream.core.topology import Edge, Operator
from elastream.engines.spark.events import to_bytes
from elastream.engines.spark.transport.base import StoredBatch

UNIT = 16
"""Events that stay together when no key parts them: else batches go to pieces at every step."""
_GOLDEN = 0.6180339887498949
"""Multiples of it are spread evenly over [0, 1), however many are taken."""


class Emitter:
    """Chooses, for one producer, the edges and replicas that its events take."""

    def __init__(self, edges: Sequence[Edge], targets: Mapping[str, Operator]) -> None:
        self._edges = tuple(edges)
        self._targets = targets
        self._routers: dict[str, Grouping[Any]] = {
            e.target: targets[e.target].router for e in edges
        }
        self._states = {
            name: router.start(targets[name].pool) for name, router in self._routers.items()
        }
        self._position = 0

    def learn(self, target: str, feedback: Feedback) -> None:
        """Hand a grouping what replicas report; where units are routed, a unit is its event."""
        if isinstance(feedback, Utilization) and not self._targets[target].key:
            feedback = replace(feedback, per_event=UNIT * feedback.per_event)
        self._states[target] = self._routers[target].learn(self._states[target], feedback)

    def emit(
        self, table: pa.Table, born: float, active: Mapping[str, Sequence[int]]
    ) -> tuple[list[StoredBatch], dict[str, int]]:
        """The batches for all successors, and how many events each gets."""
        batches: list[StoredBatch] = []
        sent: dict[str, int] = {}
        for edge, part in self._parts(table):
            sent[edge.target] = part.num_rows
            if part.num_rows:
                batches += self._routed(edge.target, part, born, active[edge.target])
        return batches, sent

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

    def _routed(
        self, target: str, table: pa.Table, born: float, active: Sequence[int]
    ) -> Iterator[StoredBatch]:
        chosen = self._chosen(target, table, active)
        for replica in np.unique(chosen).tolist():
            mine = chosen == replica
            part = table if mine.all() else table.filter(pa.array(mine))
            yield StoredBatch(target, replica, part.num_rows, born, to_bytes(part))

    def _chosen(self, target: str, table: pa.Table, active: Sequence[int]) -> NDArray[np.intp]:
        """The replica of every event; without a key, units of events are routed as one."""
        router, key, count = self._routers[target], self._targets[target].key, table.num_rows
        if key:
            batch = Batch.of(table.column(key).to_numpy())
            routing = router.route(self._states[target], batch, active)
            chosen = routing.replicas
        else:
            routing = router.route(self._states[target], Batch(-(-count // UNIT)), active)
            chosen = np.repeat(routing.replicas, UNIT)[:count]
        self._states[target] = routing.state
        return chosen


def _mask(matches: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(matches, pa.Array | pa.ChunkedArray):
        return matches
    return pa.array(np.asarray(matches, dtype=bool))
