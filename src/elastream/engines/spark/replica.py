"""A replica: takes batches from its queue, runs the operator, emits the results, counts.

It knows nothing of Spark. Whatever runs it hands it a transport and says when to stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter, process_time, time
from typing import Any

import pyarrow as pa

from elastream.core.latency import LatencyHistogram
from elastream.core.topology import Operator, Topology
from elastream.engines.spark.emission import Emitter
from elastream.engines.spark.events import from_bytes, input_of, to_bytes, to_table
from elastream.engines.spark.transport.base import (
    ActivePlan,
    Counts,
    DeadLetter,
    StoredBatch,
    Transport,
)
from elastream.engines.spark.transport.outbox import output_queue

WORK_SECONDS = 0.02
"""How much work a replica takes at once: more saves overhead, less saves latency."""
MOST_EVENTS = 10_000
LOOK_SECONDS = 0.5
"""How often an active replica looks around when nobody wakes it."""
IDLE_SECONDS = 5.0
"""How often an inactive one does: the bell of a new plan wakes it anyway."""
FULL_SECONDS = 0.02
"""How long it waits when a successor's queue is full."""


class Replica:
    """One replica of one operator."""

    def __init__(
        self,
        topology: Topology,
        operator: str,
        number: int,
        transport: Transport,
        queue_size: int,
        put_out: bool = False,
    ) -> None:
        self._operator: Operator = topology.by_name[operator]
        self._number = number
        self._transport = transport
        self._queue_size = queue_size
        edges = topology.outgoing[operator]
        self._successors = [edge.target for edge in edges]
        self._emitter = Emitter(edges, topology.by_name)
        self._outbox = output_queue(operator) if put_out else None
        self._bounded = [*self._successors, *([self._outbox] if self._outbox else [])]
        self._convert = input_of(self._operator.function)
        self._shared = self._operator.router.name == "pull"
        self._plan = ActivePlan({}, version=-1)
        self._looked = 0.0
        self._seconds_per_event = self._operator.execution_time or WORK_SECONDS

    def run(self) -> None:
        """Work until another process takes this replica's place, or all are dismissed."""
        self._transport.join((self._operator.name, self._number))
        with self._resource() as arguments:
            while self._look():
                if not self._step(arguments):
                    self._transport.wait(LOOK_SECONDS if self._active else IDLE_SECONDS)
                    self._looked = 0.0

    @property
    def _active(self) -> bool:
        return self._number in self._plan.active.get(self._operator.name, ())

    def _look(self) -> bool:
        """Read the newest plan now and then; False when this replica has been replaced."""
        now = perf_counter()
        if now - self._looked < LOOK_SECONDS:
            return True
        self._looked = now
        newest = self._transport.plan()
        if newest.version != self._plan.version:
            self._plan = newest
            for name in self._successors:
                if name in newest.utilization:
                    self._emitter.learn(name, newest.utilization[name])
        return self._transport.owns()

    def _step(self, arguments: tuple[Any, ...]) -> bool:
        """Process what can be taken; False when there is nothing to do."""
        if not self._plan.active:
            return False
        if any(self._transport.waiting(name) >= self._queue_size for name in self._bounded):
            self._transport.wait(FULL_SECONDS)
            return True
        # A replica that was turned off goes on until its own queue is empty: it drains.
        active = self._active
        most = min(max(int(WORK_SECONDS / self._seconds_per_event), 1), MOST_EVENTS)
        batches = self._transport.take(most, self._shared) if active or not self._shared else []
        if not batches:
            return False
        self._process(batches, arguments)
        return True

    def _process(self, batches: Sequence[StoredBatch], arguments: tuple[Any, ...]) -> None:
        events = sum(batch.events for batch in batches)
        born = sum(batch.born * batch.events for batch in batches) / events
        table = pa.concat_tables(
            [from_bytes(batch.data) for batch in batches], promote_options="permissive"
        )
        cpu, started = process_time(), perf_counter()
        dead: list[DeadLetter] = []
        outputs = list(self._outputs(table, arguments, dead))
        busy = perf_counter() - started
        self._seconds_per_event = 0.8 * self._seconds_per_event + 0.2 * busy / events
        output = (
            pa.concat_tables(outputs, promote_options="permissive") if outputs else pa.table({})
        )
        results, sent = self._emitter.emit(output, born, self._plan.active)
        if self._outbox and output.num_rows:
            results.append(StoredBatch(self._outbox, 0, output.num_rows, born, to_bytes(output)))
        failed = sum(letter.events for letter in dead)
        counts = Counts(
            processed=events - failed,
            emitted=output.num_rows,
            dropped=failed,
            busy=busy,
            cpu=process_time() - cpu,
            sent=sent,
            latency=None if self._successors else _latency(batches),
        )
        self._transport.commit(batches, results, counts, dead)

    def _outputs(
        self, table: pa.Table, arguments: tuple[Any, ...], dead: list[DeadLetter]
    ) -> Iterator[pa.Table]:
        """The function's output; events on which it fails are found by halving, and set aside."""
        try:
            output = to_table(self._operator.function(self._convert(table), *arguments))
        except Exception as error:
            if table.num_rows == 1:
                reason = f"{type(error).__name__}: {error}"
                dead.append(DeadLetter(self._operator.name, 1, reason, to_bytes(table)))
                return
            half = table.num_rows // 2
            yield from self._outputs(table.slice(0, half), arguments, dead)
            yield from self._outputs(table.slice(half), arguments, dead)
        else:
            if output.num_rows:
                yield output

    @contextmanager
    def _resource(self) -> Iterator[tuple[Any, ...]]:
        """What set-up made, for as long as the replica lives."""
        if self._operator.setup is None:
            yield ()
            return
        resource = self._operator.setup()
        try:
            yield (resource,)
        finally:
            if self._operator.teardown:
                self._operator.teardown(resource)


def _latency(batches: Sequence[StoredBatch]) -> LatencyHistogram:
    now = time()
    return LatencyHistogram.of(
        [now - batch.born for batch in batches], [batch.events for batch in batches]
    )
