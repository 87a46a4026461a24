"""Running an operator's function: what it costs, what comes of it, and what it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import pyarrow as pa

from elastream.core.topology import Operator
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.base import DeadLetter
from elastream.engines.spark.options import OnError
from elastream.engines.spark.worker.events import input_of, to_table
from elastream.errors import described

Divided = dict[str, pa.Table]
"""Events by the queue that they are for."""


class OperatorFailedError(Exception):
    """The function raised, and that is to end the run."""


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
        divide: Finds the queues of the events that the function puts out; what it refuses, the
            function should not have put out.
        on_error: What becomes of events on which the function fails.
    """

    def __init__(
        self, operator: Operator, divide: Callable[[pa.Table], Divided], on_error: OnError
    ) -> None:
        self._operator = operator
        self._divide = divide
        self._on_error = on_error
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

    def run(self, table: pa.Table, work: Work) -> None:
        """Add what comes of the events; those on which the function fails are found by halving."""
        try:
            output, divided = self._outcome(table, work)
        except Exception as error:
            reason = described(error)
            if self._on_error is OnError.FAIL:
                raise OperatorFailedError(reason) from error
            if table.num_rows == 1:
                letter = DeadLetter(self._operator.name, 1, reason, to_bytes(table))
                work.dead.append(letter)
                return
            half = table.num_rows // 2
            self.run(table.slice(0, half), work)
            self.run(table.slice(half), work)
        else:
            work.emitted += output.num_rows
            work.divided.append(divided)

    def _outcome(self, table: pa.Table, work: Work) -> tuple[pa.Table, Divided]:
        started = perf_counter()
        try:
            output = to_table(self._operator.function(self._convert(table), *self._arguments))
        finally:
            work.busy += perf_counter() - started
        return output, self._divide(output)
