"""Sources: where events come from, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import time

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.engines.spark.backends.base import Counts, Transport
from elastream.engines.spark.worker.outlet import Outlet
from elastream.engines.spark.worker.routing import UNIT
from elastream.engines.spark.worker.standstill import stand_still
from elastream.errors import described

SHORTEST_TICK, LONGEST_TICK = 0.005, 0.01
"""A source sends whenever a unit of events has come, but neither more nor less often than this."""
LARGEST_BATCH = 2_000


@dataclass(frozen=True)
class Source:
    """Events at a rate that follows a trace.

    `make(first, count)` makes the events with the numbers `first` to `first + count - 1`; the same
    numbers must always make the same events.
    """

    make: Callable[[int, int], pa.Table]
    step: float
    """Seconds between two values of the trace."""
    rates: NDArray[np.float64]
    """Events per second in each step."""

    @property
    def columns(self) -> list[str]:
        """What its events have, by the first one."""
        return list(self.make(0, 1).column_names)

    def due(self, seconds: float) -> int:
        """How many events have come so long after the start."""
        times, events = self._curve
        return int(np.interp(seconds, times, events))

    def seconds_at(self, count: int) -> float:
        """How long after the start so many events have come."""
        times, events = self._curve
        return float(np.interp(count, events, times))

    @cached_property
    def _curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The end of every step, and how many events have come by then."""
        events = np.concatenate([[0.0], np.cumsum(self.rates * self.step)])
        return np.linspace(0.0, self.step * len(self.rates), len(events)), events


class SourceRunner:
    """Plays a source into the queues of its successors, from where it stopped before."""

    def __init__(self, name: str, source: Source, outlet: Outlet, transport: Transport) -> None:
        self._name = name
        self._source = source
        self._outlet = outlet
        self._transport = transport

    def run(self) -> None:
        """Send what is due, tick by tick, from when there is a plan."""
        self._transport.join((self._name, 0))
        while not self._outlet.plan.active:
            if not self._outlet.look():
                return
            self._outlet.wait(LONGEST_TICK)
        before = self._transport.totals().counts.get((self._name, 0), Counts())
        self._play(before.emitted, before.processed)

    def _play(self, sent: int, arrived: int) -> None:
        start = time() - self._source.seconds_at(arrived)
        while self._outlet.look():
            due = self._source.due(time() - start)
            count = min(due - sent, LARGEST_BATCH) if self._outlet.room() else 0
            if count or due > arrived:
                born = start + self._source.seconds_at(sent + count // 2)
                try:
                    divided = self._outlet.divide(self._source.make(sent, count))
                except Exception as error:  # What makes events, and conditions on edges: user code.
                    stand_still((self._name, 0), self._transport, described(error))
                    return
                self._send(divided, count, due - arrived, born)
                sent, arrived = sent + count, due
            if count < LARGEST_BATCH:
                next_unit = start + self._source.seconds_at(sent + UNIT) - time()
                self._outlet.wait(min(max(next_unit, SHORTEST_TICK), LONGEST_TICK))

    def _send(self, divided: Mapping[str, pa.Table], count: int, arrived: int, born: float) -> None:
        """Emit the next events; what arrived but found no room is counted as arrived only."""
        emission = self._outlet.emission([divided], born)
        counts = Counts(processed=arrived, emitted=count, sent=emission.sent, lost=emission.lost)
        self._transport.commit([], emission.batches, counts)
