"""The trace player: a source whose events come at the rate that a trace says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from time import monotonic, time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.births import Births
from elastream.engines.spark.worker.events import Events
from elastream.engines.spark.worker.member import CannotGoOnError, Member
from elastream.engines.spark.worker.routing import UNIT, Divided
from elastream.errors import InvalidInputError, described

SHORTEST_TICK, LONGEST_TICK = 0.005, 0.01
"""A player sends whenever a unit of events has come, but neither more nor less often than this."""
BATCH_SECONDS = 0.02
LEAST_BATCH, LARGEST_BATCH = 2_000, 10_000
"""It sends at most what comes in this time at once, within these bounds: a step is short, and of
many events a batch costs hardly more than of few."""


@dataclass(frozen=True)
class TraceSource:
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
        return list(checked(self.make(0, 1)).column_names)

    def due(self, seconds: float) -> int:
        """How many events have come this many seconds after the start."""
        times, events = self._curve
        return int(np.interp(seconds, times, events))

    def seconds_at(self, count: int) -> float:
        """How many seconds after the start this many events have come."""
        times, events = self._curve
        return float(np.interp(count, events, times))

    @cached_property
    def _curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The end of every step, and how many events have come by then."""
        events = np.concatenate([[0.0], np.cumsum(self.rates * self.step)])
        return np.linspace(0.0, self.step * len(self.rates), len(events)), events


def checked(made: Any) -> pa.Table:
    """What `make` made, if it is a table."""
    if not isinstance(made, pa.Table):
        raise InvalidInputError(
            f"make(first, count) must return a pyarrow.Table, not {type(made).__name__}; "
            "pyarrow.Table.from_pylist makes one of rows"
        )
    return made


class TracePlayer(Member):
    """Plays a trace into the lanes of the source's successors, from where it stopped before."""

    def __init__(self, source: TraceSource, *member: Any) -> None:
        super().__init__(*member)
        self._source = source
        self._started: float | None = None
        """When the trace began, by the monotonic clock: the other one may be set back."""
        self._sent = self._arrived = 0

    def step(self) -> float:
        """Send what is due, as far as there is room for it."""
        if not self.plan.active or not self.plan.admits:
            return LONGEST_TICK
        if self._started is None:
            before = self.ledger.counts(self.name)
            self._sent, self._arrived = before.emitted, before.processed
            self._started = monotonic() - self._source.seconds_at(self._arrived)
        now = monotonic() - self._started
        due = max(self._source.due(now), self._arrived)
        largest = self._largest_batch(now)
        count = min(due - self._sent, largest) if self.pressure.is_open() else 0
        if count or due > self._arrived:
            self._send(count, due)
        if count == largest:
            return 0.0
        next_unit = self._started + self._source.seconds_at(self._sent + UNIT) - monotonic()
        return min(max(next_unit, SHORTEST_TICK), LONGEST_TICK)

    def _largest_batch(self, now: float) -> int:
        """How many events to send at once, this many seconds after the start."""
        coming = self._source.due(now) - self._source.due(now - BATCH_SECONDS)
        return min(max(coming, LEAST_BATCH), LARGEST_BATCH)

    def _send(self, count: int, due: int) -> None:
        """Emit the next events; what arrived but found no room is counted as arrived only."""
        emission = self.router.emission([self._next(count)])
        counts = Counts(
            processed=due - self._arrived,
            emitted=count,
            sent=emission.sent,
            lost=emission.lost,
        )
        if self.commit([], emission.parcels, counts):
            self._sent, self._arrived = self._sent + count, due

    def _next(self, count: int) -> Divided:
        assert self._started is not None
        offset = time() - monotonic() + self._started
        first, last = self._sent, self._sent + max(count - 1, 0)
        born = offset + self._source.seconds_at(first), offset + self._source.seconds_at(last)
        try:
            table = self._source.make(first, count)
            return self.router.divide(Events(table, Births.evenly(count, *born)))
        except Exception as error:  # What makes events, and conditions on edges: user code.
            raise CannotGoOnError(described(error)) from error
