"""A replica: takes events from its lanes, runs the operator, emits the results, counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from time import perf_counter, process_time, time
from typing import Any

import pyarrow as pa

from elastream.core.context import Context
from elastream.core.lanes import lanes_of_keys
from elastream.core.topology import Topology
from elastream.engines.spark.arrow_ipc import key_values
from elastream.engines.spark.backends.base import SHARED_LANE, Backend, Counts, Taken
from elastream.engines.spark.births import Births
from elastream.engines.spark.options import OnError
from elastream.engines.spark.worker.events import Events, together
from elastream.engines.spark.worker.execution import Execution, Work, events_of
from elastream.engines.spark.worker.member import RELEASE_SECONDS, Member
from elastream.engines.spark.worker.quarantine import DEATHS
from elastream.engines.spark.worker.unit_size import UnitSize
from elastream.engines.spark.worker.value_costs import ValueCosts
from elastream.engines.spark.worker.watchdog import Watchdog

LOOK_SECONDS = 0.5
"""How often an active replica looks around when nobody wakes it."""
IDLE_SECONDS = 5.0
"""How often an inactive one does: a new plan wakes it anyway."""
FULL_SECONDS = 0.02
"""How long it waits when a successor's lanes are full."""


class Replica(Member):
    """One replica of one operator."""

    def __init__(
        self, topology: Topology, on_error: OnError, backend: Backend, *member: Any
    ) -> None:
        super().__init__(*member)
        self._operator = operator = topology.by_name[self.name[0]]
        self._watchdog = Watchdog(self.name, backend.connect, operator.timeout)
        self._execution = Execution(
            operator, self.router.divide, on_error, self._lane_of, self._watchdog
        )
        self._shared = operator.router.shared_queue
        self._costs = ValueCosts.wanted(topology, self.name, self.board)
        self._measures_latency = not topology.outgoing[operator.name]
        self._unit = UnitSize(operator.execution_time)
        self._busy_since: float | None = None
        """When the unit before was done, if more waited by then."""

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Set up what the function needs, and watch over it."""
        with self._execution.ready(), self._watchdog:
            yield

    def step(self) -> float:
        """Process what can be taken."""
        busy_since, self._busy_since = self._busy_since, None
        if not self.plan.active:
            return IDLE_SECONDS
        active = self.name[1] in self.plan.active.get(self.name[0], ())
        complete = self._shared or self.hold(self.owned)
        idle = LOOK_SECONDS if active else IDLE_SECONDS
        if not active or self.plan.halted:
            return idle
        if not self.pressure.is_open():
            return FULL_SECONDS
        most = max(self._unit.most, self._execution.calls_at_once)
        most = min(most, self.pressure.allowance)
        if taken := self.lanes.take(most, self._shared, self._execution.wants_context):
            suspects = [each for each in taken if each.deaths >= DEATHS]
            if suspects:
                self._process(suspects, None, in_quarantine=True)
                taken = [each for each in taken if each.deaths < DEATHS]
            if taken:
                self._process(taken, busy_since)
        return idle if complete else RELEASE_SECONDS

    def _process(
        self, taken: Sequence[Taken], busy_since: float | None, in_quarantine: bool = False
    ) -> None:
        more_waits = self.lanes.more
        cpu, events = process_time(), sum(each.events for each in taken)
        work = Work()
        for part, contexts in self._calls(taken):
            if in_quarantine:
                self._execution.run_in_quarantine(part, work, contexts)
            elif self._costs:
                self._costs.run(part, self._execution, work)
            else:
                self._execution.run(part, work, contexts)
        self._unit.learn(events, work.busy)
        emission = self.router.emission(work.divided)
        failed = sum(letter.events for letter in work.dead)
        latency = None
        if self._measures_latency:
            latency = Births.joined(each.births for each in taken).latencies(time())
        # From one unit to the next: committing the one before and looking around are part of it. A
        # last unit, which takes what is left, would make an event look dearer than it is.
        done = perf_counter()
        saturated = done - busy_since if more_waits and busy_since else 0.0
        self._busy_since = done if more_waits else None
        counts = Counts(
            processed=events - failed,
            emitted=work.emitted,
            busy=work.busy,
            cpu=process_time() - cpu,
            sent=emission.sent,
            lost=emission.lost,
            latency=latency,
            saturated=saturated,
            saturated_events=events - failed if saturated else 0,
        )
        committed = self.commit(taken, emission.parcels, counts, work.dead)
        if self._costs and not in_quarantine:
            self._costs.report(taken, committed)

    def _calls(self, taken: Sequence[Taken]) -> list[tuple[Events, list[Context]]]:
        """What to run at once: as much as possible, but units with names for batches one by one."""
        units = [events_of(each) for each in taken]
        contexts = [self._contexts(each) for each in taken]
        if self._execution.wants_context and not self._execution.takes_rows:
            return list(zip(units, contexts, strict=True))
        parts = together(units)
        if len(parts) == len(units):
            return list(zip(parts, contexts, strict=True))
        return [(part, list(chain.from_iterable(contexts))) for part in parts]

    def _contexts(self, taken: Taken) -> list[Context]:
        """One for every event, if they are wanted."""
        if taken.unit is None:
            return []
        name, attempt = taken.unit.name, taken.unit.attempt
        return [Context(*self.name, name, attempt, place) for place in range(taken.events)]

    def _lane_of(self, event: pa.Table) -> int:
        """Where an event would be tried again: its key's lane, or else one of ours."""
        if self._shared:
            return SHARED_LANE
        if self._operator.router.key_is_lane:
            keys = key_values(event.column(self._operator.key))
            return int(lanes_of_keys(keys, len(self.plan.owners[self._operator.name]))[0])
        return min(self.owned)
