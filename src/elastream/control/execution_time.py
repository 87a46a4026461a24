"""How long one event takes at an operator: measured before the start, then tracked online."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from elastream.core.stats import IntervalStats, OperatorStats
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError

WINDOW = 9
"""How many intervals the online estimate looks back."""
COMPARED_UNITS = 30
"""How many units of events are compared to tell how much their times vary."""


def benchmark(
    function: Callable[[Any], Any],
    batch: Any,
    count: int,
    repeats: int = 5,
    timer: Callable[[], float] = perf_counter,
) -> float:
    """Seconds per event of an operator's function on a batch of `count` events, before the start.

    The first call does not count, because it loads what later ones have loaded; of the others the
    median does.
    """
    if count < 1:
        raise InvalidInputError("a benchmark needs a batch of at least one event")
    function(batch)
    taken = []
    for _ in range(repeats):
        start = timer()
        function(batch)
        taken.append(timer() - start)
    return statistics.median(taken) / count


class ExecutionTimes:
    """et_i of every operator: as declared at first, then the median of what was measured recently.

    The median leaves out a few intervals that are far off: a pause for garbage collection, a slow
    start, a neighbour that took the processor.
    """

    def __init__(self, topology: Topology) -> None:
        self._declared = {
            name: operator.execution_time
            for name, operator in topology.by_name.items()
            if operator.execution_time is not None
        }
        self._measured: dict[str, deque[float]] = {}
        self._overheads: dict[str, deque[float]] = {}
        self._spreads: dict[str, Spread] = {}

    def update(self, stats: IntervalStats) -> None:
        """Take in an interval; an idle operator tells nothing."""
        for name, operator in stats.operators.items():
            if operator.execution_time is not None:
                recent = self._measured.setdefault(name, deque(maxlen=WINDOW))
                recent.append(operator.execution_time)
            if operator.service_time and operator.execution_time:
                overheads = self._overheads.setdefault(name, deque(maxlen=WINDOW))
                overheads.append(max(operator.service_time / operator.execution_time, 1.0))
            if operator.units:
                self._spreads.setdefault(name, Spread()).update(operator)

    @property
    def current(self) -> Mapping[str, float]:
        """The operators for which it is known, in seconds per event."""
        medians = {name: statistics.median(recent) for name, recent in self._measured.items()}
        return {**self._declared, **medians}

    @property
    def service_times(self) -> Mapping[str, float]:
        """What an event costs a busy replica, in seconds, taking, committing and waking included.

        It is known from intervals in which replicas always had something to do, as a multiple of
        the execution time; before the first of them it is the execution time itself.
        """
        return {
            name: seconds * statistics.median(self._overheads.get(name) or [1.0])
            for name, seconds in self.current.items()
        }

    @property
    def variations(self) -> Mapping[str, float]:
        """Standard deviation over mean of an operator's execution times, where it is known."""
        return {
            name: variation
            for name, spread in self._spreads.items()
            if (variation := spread.variation) is not None
        }


class Spread:
    """How much the execution times of one operator vary, from the times of its units.

    A unit of n events takes n·et on average, with a variance of n·σ² around it. So (S - n·et)²/n
    has the mean σ², and adds up over units to the sum of S²/n, less (sum of S)² by all events.
    """

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=WINDOW)
        self._units = self._squares = self._busy = self._events = 0.0

    def update(self, operator: OperatorStats) -> None:
        """Take in an interval; there is an estimate whenever enough units have come together."""
        self._units += operator.units
        self._squares += operator.squares
        self._busy += operator.busy
        self._events += operator.processed + _failed(operator)
        if self._units < COMPARED_UNITS or not (self._busy and self._events):
            return
        variance = (self._squares - self._busy**2 / self._events) / (self._units - 1)
        mean = self._busy / self._events
        self._recent.append(math.sqrt(max(variance, 0.0)) / mean)
        self._units = self._squares = self._busy = self._events = 0.0

    @property
    def variation(self) -> float | None:
        """The median of the latest estimates; None before the first."""
        return statistics.median(self._recent) if self._recent else None


def _failed(operator: OperatorStats) -> float:
    """The events of its units that were not processed: of a chain, only its first one counts."""
    first = next(iter(operator.inside.values()), operator)
    return first.set_aside
