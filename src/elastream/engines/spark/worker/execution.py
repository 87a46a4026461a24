"""Running an operator's function: what it costs, what comes of it, and what it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import pyarrow as pa

from elastream.core.topology import Operator
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.base import DeadLetter, Taken
from elastream.engines.spark.options import OnError
from elastream.engines.spark.worker.events import Events, input_of, to_table
from elastream.engines.spark.worker.member import CannotGoOnError
from elastream.engines.spark.worker.routing import Divided
from elastream.errors import described


def events_of(taken: Taken) -> Events:
    """The events that were taken."""
    table = from_bytes(taken.data)
    if taken.chosen is not None:
        table = table.take(taken.chosen)
    return Events(table, taken.births)


@dataclass
class Work:
    """What comes of the events that a replica has taken at once."""

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
    """

    def __init__(
        self,
        operator: Operator,
        divide: Callable[[Events], Divided],
        on_error: OnError,
        lane_of: Callable[[pa.Table], int],
    ) -> None:
        self._operator = operator
        self._divide = divide
        self._on_error = on_error
        self._lane_of = lane_of
        self._convert = input_of(operator.function)
        self._arguments: tuple[Any, ...] = ()

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Set up, and tear down in the end."""
        if self._operator.setup is None:
            yield
            return
        resource = self._operator.setup()
        self._arguments = (resource,)
        try:
            yield
        finally:
            if self._operator.teardown:
                self._operator.teardown(resource)

    def run(self, events: Events, work: Work) -> None:
        """Add what comes of the events; those on which the function fails are found by halving."""
        rows = events.table.num_rows
        try:
            emitted, divided = self._outcome(events, work)
        except Exception as error:
            reason = described(error)
            if self._on_error is OnError.FAIL:
                raise CannotGoOnError(reason) from error
            if rows == 1:
                data, lane = to_bytes(events.table), self._lane_of(events.table)
                work.dead.append(DeadLetter(self._operator.name, 1, reason, data, lane))
                return
            half = rows // 2
            self.run(events.cut(0, half), work)
            self.run(events.cut(half, rows - half), work)
        else:
            work.emitted += emitted
            work.divided.append(divided)

    def _outcome(self, events: Events, work: Work) -> tuple[int, Divided]:
        started = perf_counter()
        try:
            output = to_table(
                self._operator.function(self._convert(events.table), *self._arguments)
            )
        finally:
            work.busy += perf_counter() - started
        births = events.births.of_output(output.num_rows)
        return output.num_rows, self._divide(Events(output, births))
