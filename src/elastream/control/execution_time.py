"""How long one event takes at an operator: measured before the start, then tracked online."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError

WINDOW = 9
"""How many intervals the online estimate looks back."""


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

    def update(self, stats: IntervalStats) -> None:
        """Take in an interval; an idle operator tells nothing."""
        for name, operator in stats.operators.items():
            if operator.execution_time is not None:
                recent = self._measured.setdefault(name, deque(maxlen=WINDOW))
                recent.append(operator.execution_time)
            if operator.service_time and operator.execution_time:
                overheads = self._overheads.setdefault(name, deque(maxlen=WINDOW))
                overheads.append(max(operator.service_time / operator.execution_time, 1.0))

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
