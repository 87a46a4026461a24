"""From an operator's output to the lanes of its successors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.core.groupings import Batch, Grouping
from elastream.core.groupings.base import (
    SHARED_QUEUE,
    Feedback,
    ReplicaLoads,
    Routing,
    SyncRequest,
    Utilization,
)
from elastream.core.lanes import lanes_by_owner, lanes_of_keys
from elastream.core.topology import Edge, Operator, Topology
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel, Requests
from elastream.engines.spark.births import Births
from elastream.engines.spark.keys import check_keys, key_values
from elastream.engines.spark.worker.back_pressure import BackPressure
from elastream.engines.spark.worker.events import Events, together
from elastream.engines.spark.worker.named_outputs import Named, unpacked
from elastream.errors import InvalidInputError

UNIT = 19
"""About this many events stay together unless a key separates them: else batches fragment."""
SHARES = 4
"""An emission for a shared queue is cut into at most so many parts for each active replica."""
_GOLDEN = 0.6180339887498949
"""Multiples of it are spread evenly over [0, 1), however many are taken."""

Divided = dict[str, Events]
"""Events by the operator, or the output, that they are for."""


class Emission(NamedTuple):
    """What is ready to be committed."""

    parcels: tuple[Parcel, ...]
    sent: Mapping[str, int]
    """Events per successor."""
    lost: Mapping[str, int]
    """Those among them that found no room, and were dropped."""


class Router:
    """Chooses, for one producer, the edges, replicas and lanes that its events take.

    Args:
        producer: Whose events they are.
        topology: The pipeline, as declared.
        pressure: Says which lanes are short.
        read_out: Whether somebody reads its output.
        chained: The successors in the same replica: events for them need no lane.
    """

    def __init__(
        self,
        producer: MemberName,
        topology: Topology,
        pressure: BackPressure,
        read_out: bool,
        chained: Collection[str] = (),
    ) -> None:
        self._producer = producer
        self._edges: Sequence[Edge] = topology.outgoing[producer[0]]
        self._targets: dict[str, Operator] = {
            edge.target: topology.by_name[edge.target] for edge in self._edges
        }
        self._pressure = pressure
        self._output = output_of(producer[0]) if read_out else None
        self._groupings: dict[str, Grouping[Any]] = {
            name: operator.router for name, operator in self._targets.items() if name not in chained
        }
        self._states = {
            name: grouping.start(self._targets[name].pool, producer[1])
            for name, grouping in self._groupings.items()
        }
        self._choosy = [name for name, operator in self._targets.items() if operator.needs]
        self._active: dict[str, tuple[int, ...]] = {}
        self._owners: dict[str, NDArray[np.intp]] = {}
        self._lanes: dict[str, dict[int, tuple[int, ...]]] = {}
        self._whole = all(edge.when is None and edge.share is None for edge in self._edges)
        self._position = 0

    @property
    def successors(self) -> Sequence[str]:
        """The operators whose lanes events go to."""
        return list(self._groupings)

    @property
    def listens(self) -> bool:
        """Whether a grouping wants to hear from replicas."""
        return any(grouping.listens_to for grouping in self._groupings.values())

    def state(self, target: str) -> Any:
        """What the grouping of a successor remembers."""
        return self._states[target]

    def follow(self, plan: LanePlan) -> None:
        """Send to the replicas that are active in this plan from now on."""
        for name in self._groupings:
            if name in plan.active:
                self._active[name] = plan.active[name]
                owners = np.array(plan.owners[name])
                if name in self._owners and not np.array_equal(owners, self._owners[name]):
                    self._states[name] = self._groupings[name].after_a_move(self._states[name])
                self._owners[name] = owners
                self._lanes[name] = lanes_by_owner(plan.owners[name])

    def learn(self, target: str, feedback: Feedback) -> None:
        """Hand a grouping what replicas report; where units are routed, a unit is its event."""
        grouping = self._groupings.get(target)
        if grouping is None or type(feedback) not in grouping.listens_to:
            return
        if not self._targets[target].key:
            if isinstance(feedback, Utilization):
                feedback = replace(feedback, per_event=UNIT * feedback.per_event)
            elif isinstance(feedback, ReplicaLoads):
                feedback = feedback.in_units(UNIT)
        self._states[target] = grouping.learn(self._states[target], feedback)

    def divide(self, events: Events) -> Divided:
        """The events for each successor; an error when they are not what its edge expects."""
        named = unpacked(events.table)
        if named is not None:
            parts, events = self._by_name(named, events.births)
        else:
            parts = self._by_edge(events)
        for target in self._choosy:
            if parts[target].table.num_rows:
                self._check(self._targets[target], parts[target].table)
        if self._output:
            parts[self._output] = events
        return parts

    def _check(self, target: Operator, table: pa.Table) -> None:
        """Whether the events have the columns that the operator needs, and keys with a hash."""
        target.check_columns(table.column_names, self._producer[0])
        if target.key and target.name in self._groupings:
            check_keys(table.column(target.key), target.key)

    def _by_edge(self, events: Events) -> Divided:
        if self._whole or not events.table.num_rows:
            return dict.fromkeys(self._targets, events)
        return {edge.target: part for edge, part in self._parts(events)}

    def _by_name(self, outputs: Sequence[Named], births: Births) -> tuple[Divided, Events]:
        """What has a name goes there; the rest takes its edges. Also, all of it together."""
        found: dict[str, list[Events]] = {name: [] for name in self._targets}
        everything: list[Events] = []
        for name, places, table in outputs:
            if name is not None and name not in self._targets:
                raise InvalidInputError(
                    f"the operator {self._producer[0]!r} emitted events for {name!r}, but its "
                    f"successors are: {', '.join(self._targets) or 'none'}"
                )
            part = Events(table, births.chosen(places))
            everything.append(part)
            divided = self._by_edge(part) if name is None else {name: part}
            for target, mine in divided.items():
                if mine.table.num_rows:
                    found[target].append(mine)
        empty = Events(pa.table({}), Births(()))
        return (
            {
                target: self._one(target, parts) if parts else empty
                for target, parts in found.items()
            },
            self._one(self._producer[0], everything) if self._output else empty,
        )

    def _one(self, reader: str, parts: Sequence[Events]) -> Events:
        merged = together(parts)
        if len(merged) > 1:
            schemas = " and ".join(str(part.table.schema).replace("\n", ", ") for part in merged)
            raise InvalidInputError(
                f"the operator {self._producer[0]!r} emitted events for {reader!r} whose columns "
                f"do not match: {schemas}"
            )
        return merged[0]

    def _parts(self, events: Events) -> Iterator[tuple[Edge, Events]]:
        """What takes each edge: all, what matches, or a slice of [0, 1) as wide as its share."""
        rows = events.table.num_rows
        places: NDArray[np.float64] | None = None
        start = 0.0
        for edge in self._edges:
            if edge.when is not None:
                yield edge, events.chosen(np.flatnonzero(_matching(edge, events.table)))
            elif edge.share is not None:
                if places is None:
                    numbers = np.arange(self._position, self._position + rows)
                    places = numbers * _GOLDEN % 1.0
                    self._position += rows
                end = start + edge.share
                yield edge, events.chosen(np.flatnonzero((places >= start) & (places < end)))
                start = end
            else:
                yield edge, events

    def emission(self, divided: Sequence[Divided]) -> Emission:
        """Find the lanes of what was divided."""
        parcels: list[Parcel] = []
        sent: dict[str, int] = {}
        lost: dict[str, int] = {}
        for name in self._targets:
            parts: list[Events] = []
            events = 0
            for each in divided:
                rows = each[name].table.num_rows
                if rows:
                    parts.append(each[name])
                    events += rows
            sent[name] = events
            if not events or name not in self._groupings:
                continue
            if self._pressure.drops and self._pressure.refuses(name):
                lost[name] = events
                continue
            for part in together(parts) if len(parts) > 1 else parts:
                parcels += self._routed(name, part)
        if self._output:
            for table, births in together([each[self._output] for each in divided]):
                if table.num_rows:
                    data = to_bytes(table)
                    parcels.append(Parcel(self._output, 0, table.num_rows, births, data))
        self._pressure.sent(parcels)
        return Emission(tuple(parcels), sent, lost)

    def _routed(self, target: str, events: Events) -> list[Parcel]:
        grouping = self._groupings[target]
        if grouping.key_is_lane:
            parcels = list(self._by_key(target, events))
        elif grouping.shared_queue:
            parcels = list(self._for_all(target, events))
        elif self._targets[target].key or events.table.num_rows >= 1.5 * UNIT:
            parcels = list(self._by_replica(target, events))
        else:
            # One unit of events goes to one replica as it is, and that is often.
            return [self._parcel(target, self._replica(target), events)]
        _check_all_routed(target, events.table.num_rows, parcels)
        return parcels

    def _replica(self, target: str) -> int:
        """The replica for one unit."""
        grouping, active = self._groupings[target], self._active[target]
        first = chosen = grouping.route_one(self._states[target], active)
        if grouping.prefers_free:
            for _ in active:
                if not self._pressure.is_busy((target, chosen[0])):
                    break
                chosen = grouping.route_one(chosen[1], active)
            else:
                chosen = first
        replica, self._states[target] = chosen
        return replica

    def _by_replica(self, target: str, events: Events) -> Iterator[Parcel]:
        """Every event, or every unit of events, has its replica."""
        routing = self._routing(target, events.table)
        first = int(routing.replicas[0])
        if (routing.replicas == first).all():
            yield self._parcel(target, first, events, routing.requests)
            return
        rows = events.table.num_rows
        each = -(-rows // len(routing.replicas))
        chosen = np.repeat(routing.replicas, each)[:rows]
        for replica in np.unique(chosen).tolist():
            mine = chosen == replica
            part = events.chosen(np.flatnonzero(mine))
            yield self._parcel(target, replica, part, _asked(replica, mine, routing.requests))

    def _by_key(self, target: str, events: Events) -> Iterator[Parcel]:
        """Every key has its lane; what one replica owns travels together."""
        column = events.table.column(self._targets[target].key)
        owners = self._owners[target]
        lane_of = lanes_of_keys(key_values(column), len(owners))
        owner_of = owners[lane_of]
        for owner in np.unique(owner_of).tolist():
            places = np.flatnonzero(owner_of == owner)
            table, births = events.chosen(places)
            yield Parcel.for_lanes(target, lane_of[places], births, to_bytes(table))

    def _for_all(self, target: str, events: Events) -> Iterator[Parcel]:
        """Parts for whoever is free: nobody has to cut what waits in the lane that all share."""
        rows = events.table.num_rows
        parts = max(min(round(rows / UNIT), SHARES * len(self._active[target])), 1)
        each = -(-rows // parts)
        for start in range(0, rows, each):
            part = events.cut(start, min(each, rows - start))
            yield self._parcel(target, SHARED_QUEUE, part)

    def _parcel(
        self, target: str, replica: int, events: Events, asked: Sequence[SyncRequest] = ()
    ) -> Parcel:
        if self._groupings[target].shared_queue:
            lane = SHARED_LANE
        else:
            lanes = len(self._owners[target])
            mine = self._lanes[target].get(replica) or range(lanes)
            lane = self._pressure.lane(target, mine, lanes)
        requests = Requests(self._producer, tuple(asked)) if asked else None
        rows, data = events.table.num_rows, to_bytes(events.table)
        return Parcel(target, lane, rows, events.births, data, requests=requests)

    def _routing(self, target: str, table: pa.Table) -> Routing[Any]:
        """A replica for every event; without a key, for every unit of events."""
        key = self._targets[target].key
        if key:
            batch = Batch.of(key_values(table.column(key)))
        else:
            batch = Batch(max(round(table.num_rows / UNIT), 1))
        routing = self._groupings[target].route(self._states[target], batch, self._active[target])
        self._states[target] = routing.state
        return routing


def _check_all_routed(target: str, events: int, parcels: Sequence[Parcel]) -> None:
    """Rather fail than count events as sent that are in no parcel: they would be lost."""
    routed = sum(parcel.events for parcel in parcels)
    if routed != events:
        raise RuntimeError(f"{routed} of {events} events for {target!r} found a lane")


def _asked(
    replica: int, mine: NDArray[np.bool_], requests: Sequence[SyncRequest]
) -> list[SyncRequest]:
    """What travels with a replica's events; positions count them alone."""
    return [
        replace(request, position=int(mine[: request.position].sum()))
        for request in requests
        if request.replica == replica
    ]


def _matching(edge: Edge, table: pa.Table) -> NDArray[np.bool_]:
    """Which events the condition on an edge holds for: a null is no match."""
    assert edge.when is not None
    matches = edge.when(table)
    if isinstance(matches, pa.Array | pa.ChunkedArray):
        matches = matches.fill_null(False)
    mask = np.asarray(matches)
    if mask.shape != (table.num_rows,) or mask.dtype != np.bool_:
        came = f"{len(mask)} of {mask.dtype}" if mask.ndim == 1 else type(matches).__name__
        raise InvalidInputError(
            f"the condition on the edge {edge} returned {came}, but must return "
            f"{table.num_rows} booleans, one for every event"
        )
    return mask
