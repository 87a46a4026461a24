"""A published application with real events: its operators take their time by waiting.

This way, many replicas can be shown on few cores, and execution times are the published or given
ones, not those of a machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.core.behaviour import OperatorBehaviour
from elastream.core.hashing import mix
from elastream.core.service_times import ByValue
from elastream.core.topology import Topology
from elastream.workloads.applications import Application

NUMBER, VALUE = "id", "value"
"""The columns of an event."""
LONGEST_DEBT = 0.05
"""How much of a late wake-up is made up for in the next call, in seconds."""


def waiting_topology(application: Application) -> Topology:
    """The application's topology with operators that wait, and put out what they are said to."""
    topology = application.topology
    operators = tuple(
        replace(
            operator,
            function=Waiting(application.behaviour.of(topology, operator.name), salt),
            setup=None,
            teardown=None,
        )
        for salt, operator in enumerate(topology.operators, start=1)
    )
    return replace(topology, operators=operators)


@dataclass
class Waiting:
    """Waits as long as the events take, and emits this many of them.

    A sleep always lasts a little too long. That is made up for in the next one, lest many short
    sleeps make an operator slower than it is said to be.
    """

    behaviour: OperatorBehaviour
    salt: int
    """Makes the choice of what is put out another one for every operator."""
    _debt: float = field(default=0.0, init=False)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Wait for the events of a batch together."""
        due = self._seconds(table) - self._debt
        began = time.perf_counter()
        if due > 0:
            time.sleep(due)
        late = time.perf_counter() - began - due
        self._debt = min(late, LONGEST_DEBT)
        return self._put_out(table)

    def _seconds(self, table: pa.Table) -> float:
        taken = self.behaviour.time
        if isinstance(taken, ByValue):
            return float(taken.costs[table.column(VALUE).to_numpy()].sum())
        return taken.mean * len(table)

    def _put_out(self, table: pa.Table) -> pa.Table:
        part = self.behaviour.selectivity
        if part == 1:
            return table
        drawn = uniform(table.column(NUMBER).to_numpy(), self.salt)
        copies = int(part) + (drawn < part % 1)
        return table.take(np.repeat(np.arange(table.num_rows), copies))


@dataclass(frozen=True)
class NumberedEvents:
    """Makes events with a number, and the value that sensitive operators look at."""

    value: ByValue | None
    seed: int = 0

    @classmethod
    def of(cls, application: Application, seed: int = 0) -> NumberedEvents:
        """What the operators of an application need."""
        topology, behaviour = application.topology, application.behaviour
        times = [behaviour.of(topology, name).time for name in topology.by_name]
        return cls(next((of for of in times if isinstance(of, ByValue)), None), seed)

    def __call__(self, first: int, count: int) -> pa.Table:
        """The events with these numbers; the same number always has the same value."""
        numbers = np.arange(first, first + count)
        if self.value is None:
            return pa.table({NUMBER: numbers})
        ends = np.cumsum(self.value.chances)[:-1]
        values = np.searchsorted(ends, uniform(numbers, -1 - self.seed), side="right")
        return pa.table({NUMBER: numbers, VALUE: values})


def uniform(numbers: NDArray[np.int64], salt: int) -> NDArray[np.float64]:
    """For every number one in [0, 1), always the same, that looks drawn at random.

    >>> uniform(np.arange(3), salt=1).round(3).tolist() == uniform(np.arange(3), salt=2).tolist()
    False
    """
    start = mix(np.array([salt], dtype=np.int64).view(np.uint64))
    return mix(numbers.astype(np.uint64) + start) / 2.0**64
