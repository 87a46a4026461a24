"""A replica: takes batches from its queue, runs the operator, emits the results, counts.

It knows nothing of Spark. Whatever runs it hands it a transport and says when to stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from time import process_time, time

from elastream.core.groupings.osg import Osg
from elastream.core.latency import LatencyHistogram, bin_of
from elastream.core.topology import Topology
from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.backends.base import Counts, StoredBatch, Transport, mean_birth
from elastream.engines.spark.options import OnError
from elastream.engines.spark.worker.events import together
from elastream.engines.spark.worker.execution import Execution, OperatorFailedError, Work
from elastream.engines.spark.worker.outlet import Outlet
from elastream.engines.spark.worker.sketching import Sketcher
from elastream.engines.spark.worker.standstill import stand_still

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
        outlet: Outlet,
        transport: Transport,
        on_error: OnError,
    ) -> None:
        declared = topology.by_name[operator]
        self._name = operator, number
        self._outlet = outlet
        self._transport = transport
        self._execution = Execution(declared, outlet.divide, on_error)
        self._shared = declared.router.name == "pull"
        sketches = isinstance(declared.router, Osg)
        self._sketcher = Sketcher(topology, self._name, transport) if sketches else None
        self._seconds_per_event = declared.execution_time or WORK_SECONDS

    def run(self) -> None:
        """Work until another process takes this replica's place, or all are dismissed."""
        self._transport.join(self._name)
        try:
            with self._execution.ready():
                while self._outlet.look():
                    self._outlet.wait(self._step())
        except OperatorFailedError as error:
            stand_still(self._name, self._transport, str(error))

    @property
    def _active(self) -> bool:
        operator, number = self._name
        return number in self._outlet.plan.active.get(operator, ())

    def _step(self) -> float:
        """Process what can be taken; how long to wait then, unless there is more."""
        active = self._active
        idle = LOOK_SECONDS if active else IDLE_SECONDS
        if not self._outlet.plan.active:
            return idle
        if not self._outlet.room():
            return FULL_SECONDS
        # A replica that was turned off goes on until its own queue is empty: it drains.
        if active or not self._shared:
            most = min(max(int(WORK_SECONDS / self._seconds_per_event), 1), MOST_EVENTS)
            if batches := self._transport.take(most, self._shared):
                self._process(batches)
        return idle

    def _process(self, batches: Sequence[StoredBatch]) -> None:
        cpu, events = process_time(), sum(batch.events for batch in batches)
        work = Work()
        for table in together([from_bytes(batch.data) for batch in batches]):
            if self._sketcher:
                self._sketcher.run(table, self._execution, work)
            else:
                self._execution.run(table, work)
        self._seconds_per_event = 0.8 * self._seconds_per_event + 0.2 * work.busy / events
        emission = self._outlet.emission(work.divided, mean_birth(batches))
        failed = sum(letter.events for letter in work.dead)
        counts = Counts(
            processed=events - failed,
            emitted=work.emitted,
            dropped=failed,
            busy=work.busy,
            cpu=process_time() - cpu,
            sent=emission.sent,
            lost=emission.lost,
            latency=None if self._outlet.successors else _latency(batches),
        )
        self._transport.commit(batches, emission.batches, counts, work.dead)
        if self._sketcher:
            self._sketcher.report(batches)


def _latency(batches: Sequence[StoredBatch]) -> LatencyHistogram:
    now, bins = time(), Counter[int]()
    for batch in batches:
        bins[bin_of(now - batch.born)] += batch.events
    return LatencyHistogram(bins)
