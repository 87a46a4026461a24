"""Running an operator's function: its cost, its output, and the events it fails on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pyarrow as pa

from elastream.core.context import Context
from elastream.core.topology import Operator
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.parcels import Taken
from elastream.engines.spark.births import Births
from elastream.engines.spark.options import OnError
from elastream.engines.spark.worker.events import Events
from elastream.engines.spark.worker.function import UserFunction
from elastream.engines.spark.worker.member import CannotGoOnError
from elastream.engines.spark.worker.quarantine import Quarantine
from elastream.engines.spark.worker.routing import Divided
from elastream.engines.spark.worker.watchdog import Watchdog
from elastream.errors import described


def events_of(taken: Taken) -> Events:
    """The events that were taken."""
    return Events(from_bytes(taken.data, taken.chosen), taken.births)


@dataclass(slots=True)
class Work:
    """What an operator made of the events that a replica took at once."""

    received: int = 0
    births: list[Births] = field(default_factory=list)
    busy: float = 0.0
    """Seconds in the function."""
    emitted: int = 0
    divided: list[Divided] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)


class Execution:
    """An operator's function in one replica.

    Args:
        operator: Whose function it is.
        divide: Finds the successors of the events that the function puts out; what it refuses, the
            function should not have put out.
        on_error: What becomes of events on which the function fails.
        lane_of: The lane that a single event belongs to, where it would be tried again.
        watchdog: Watches over the function.
    """

    def __init__(
        self,
        operator: Operator,
        divide: Callable[[Events], Divided],
        on_error: OnError,
        lane_of: Callable[[pa.Table], int],
        watchdog: Watchdog,
    ) -> None:
        self._operator = operator
        self._divide = divide
        self._on_error = on_error
        self._lane_of = lane_of
        self._watchdog = watchdog
        self._timeout = operator.timeout
        self._function = UserFunction(operator)
        self._quarantine = Quarantine(self.ready, self._rehearsed, operator.timeout)

    @property
    def calls_at_once(self) -> int:
        """How many events the function can work on at the same time."""
        return self._function.calls_at_once

    def ready(self) -> AbstractContextManager[None]:
        """Set up, and tear down at the end."""
        return self._function.ready()

    @property
    def wants_context(self) -> bool:
        """Whether the function asks for a `Context`."""
        return self._function.wants_context

    @property
    def takes_rows(self) -> bool:
        """Whether the function is called with one event after the other."""
        return self._function.takes_rows

    def run(self, events: Events, work: Work, contexts: Sequence[Context] = ()) -> None:
        """Add what comes of the events; those on which the function fails are found by halving."""
        table, births = events
        rows = table.num_rows
        try:
            output = self._called(table, work, contexts)
            emitted = output.num_rows
            if emitted != rows:
                births = births.of_output(emitted)
            divided = self._divide(Events(output, births))
        except Exception as error:
            if rows == 1 or self._on_error is OnError.FAIL:
                self._give_up(table, described(error), work)
                return
            half = rows // 2
            self.run(events.cut(0, half), work, contexts[:half])
            self.run(events.cut(half, rows - half), work, contexts[half:])
        else:
            work.emitted += emitted
            work.divided.append(divided)

    def run_in_quarantine(
        self, events: Events, work: Work, contexts: Sequence[Context] = ()
    ) -> None:
        """The same, event by event in another process, so that this one does not die again."""
        # The quarantine itself ends what takes too long.
        self._watchdog.function_begins(self._operator.name, None)
        try:
            outcomes = self._quarantine.run(events.table, contexts)
        finally:
            work.busy += self._watchdog.function_ends()
        for place, outcome in enumerate(outcomes):
            event = events.cut(place, 1)
            if isinstance(outcome, str):
                self._give_up(event.table, outcome, work)
                continue
            try:
                divided = self._divide(Events(outcome, event.births.of_output(outcome.num_rows)))
            except Exception as error:
                self._give_up(event.table, described(error), work)
                continue
            work.emitted += outcome.num_rows
            work.divided.append(divided)

    def _rehearsed(self, table: pa.Table, contexts: Sequence[Context]) -> pa.Table:
        """What the function puts out; conditions on edges, user code as well, are tried on it."""
        output = self._function(table, contexts)
        self._divide(Events(output, Births.evenly(output.num_rows, 0.0)))
        return output

    def _give_up(self, table: pa.Table, reason: str, work: Work) -> None:
        """Set events aside, or end the run, as `on_error` says."""
        if self._on_error is OnError.FAIL:
            raise CannotGoOnError(reason, self._operator.name)
        letter = DeadLetter(
            self._operator.name, table.num_rows, reason, to_bytes(table), self._lane_of(table)
        )
        work.dead.append(letter)

    def _called(self, table: pa.Table, work: Work, contexts: Sequence[Context]) -> pa.Table:
        self._watchdog.function_begins(self._operator.name, self._timeout)
        try:
            return self._function(table, contexts)
        finally:
            work.busy += self._watchdog.function_ends()
