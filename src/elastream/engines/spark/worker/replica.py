"""A replica: takes events from its lanes, runs the operators, emits the results, counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa

from elastream.core.chains import Chains
from elastream.core.lanes import lanes_of_keys
from elastream.engines.spark.backends.base import Backend
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Taken
from elastream.engines.spark.keys import key_values
from elastream.engines.spark.options import OnError
from elastream.engines.spark.worker.chain import Chain, Stage, Unit, busy, joined
from elastream.engines.spark.worker.entrance import Entrance, Entrances
from elastream.engines.spark.worker.events import Events, together
from elastream.engines.spark.worker.execution import Execution, events_of
from elastream.engines.spark.worker.member import RELEASE_SECONDS
from elastream.engines.spark.worker.processor import Processor
from elastream.engines.spark.worker.routing import Router
from elastream.engines.spark.worker.value_costs import ValueCosts
from elastream.engines.spark.worker.watchdog import Watchdog

LOOK_SECONDS = 0.5
"""How often an active replica looks around when nobody wakes it."""
IDLE_SECONDS = 5.0
"""How often an inactive one does: a new plan wakes it anyway."""
FULL_SECONDS = 0.02
"""How long it waits when a successor's lanes are full."""


class Replica(Processor):
    """One replica of one operator, or of a chain.

    Args:
        chains: The pipeline.
        on_error: What becomes of events on which a function fails.
        backend: Where more connections come from.
        routers: By operator that it runs: finds the lanes of what that emits.
        name: Whom it acts for.
        generation: Of which generation it is.
        member: The rest, as of every member.
    """

    def __init__(
        self,
        chains: Chains,
        on_error: OnError,
        backend: Backend,
        routers: Mapping[str, Router],
        name: MemberName,
        generation: int,
        *member: Any,
    ) -> None:
        operators = [chains.declared.by_name[each] for each in routers]
        self._operator = first = operators[0]
        timeouts = [operator.timeout for operator in operators]
        self._watchdog = Watchdog(name, backend.connect, timeouts)

        def lane_of(operator: str) -> Any:
            return self._lane_of if operator == first.name else _only_lane

        stages = [
            Stage(
                name=of.name,
                execution=Execution(
                    of, routers[of.name].divide, on_error, lane_of(of.name), self._watchdog
                ),
                router=routers[of.name],
                after=chains.chained.get(of.name),
                measures_latency=not chains.declared.outgoing[of.name],
            )
            for of in operators
        ]
        expected = chains.topology.by_name[name[0]].execution_time
        super().__init__(Chain(stages), expected, name, generation, *member)
        self._shared = first.router.shared_queue
        self._costs = ValueCosts.wanted(chains.declared, self.name, self.board)
        self._backend = backend
        self._inside = [operator.name for operator in operators[1:]]
        self._entrances = Entrances(self._inside, self.lanes, self._open_entrance)

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Set up what the functions need, and watch over them."""
        with self.chain.ready(), self._watchdog, self._entrances:
            yield

    def step(self) -> float:
        """Process what can be taken."""
        if not self.plan.active:
            return IDLE_SECONDS
        active = self.plan.active.get(self.name[0], ())
        complete = self._shared or self.settled or self.settle()
        idle = LOOK_SECONDS if self.name[1] in active else IDLE_SECONDS
        if self.name[1] not in active or self.plan.halted:
            self.idles()
            return idle
        if not self.pressure.is_open():
            self.idles()
            return FULL_SECONDS
        self.take_and_process(self._shared)
        if self._inside and self._entrances.visit(is_first=self.name[1] == active[0]):
            return RELEASE_SECONDS
        return idle if complete else RELEASE_SECONDS

    def run_chain(self, taken: Sequence[Taken], in_quarantine: bool) -> Unit:
        """Run all of its operators; value by value, if its grouping wants to know what each costs.

        Events in quarantine show nothing of that.
        """
        costs = self._costs
        if costs is None or in_quarantine:
            return super().run_chain(taken, in_quarantine)
        units: list[Unit] = []

        def execute(part: Events) -> float:
            units.append(self.chain.run([(part, ())]))
            return busy(units[-1])

        for part in together([events_of(each) for each in taken]):
            costs.run(part, execute)
        return joined(units)

    def processed(self, taken: Sequence[Taken], committed: bool, in_quarantine: bool) -> None:
        """Report to producers what values cost."""
        if self._costs and not in_quarantine:
            self._costs.report(taken, committed)

    def _open_entrance(self, operator: str, undo: ExitStack) -> Entrance:
        """Act for an operator of the chain, too."""
        with ExitStack() as opened:
            connection = opened.enter_context(self._backend.connect())
            chain, name = self.chain.beginning_at(operator), (operator, self.name[1])
            member = name, self.generation, connection, chain.routers, self.pressure, self.hand_over
            entrance = Entrance(chain, None, *member)
            connection.lanes.join(name, self.generation)
            opened.callback(entrance.leave)
            undo.push(opened.pop_all())
        return entrance

    def _lane_of(self, event: pa.Table) -> int:
        """Where an event would be tried again: its key's lane, or else one of ours."""
        if self._shared:
            return SHARED_LANE
        if self._operator.router.key_is_lane:
            keys = key_values(event.column(self._operator.key))
            return int(lanes_of_keys(keys, len(self.plan.owners[self._operator.name]))[0])
        return min(self.owned)


def _only_lane(event: pa.Table) -> int:
    """An operator inside a chain has one lane, for what is tried again."""
    return 0
