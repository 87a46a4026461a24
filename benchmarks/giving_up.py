"""When a rival can no longer win: it is given up, and its run ends.

It would win if it kept the objective for less than a given number of replica-seconds. That has
become impossible once

- more events were late than may be late of the whole trace, or
- what it has spent, and the least that the rest can take, is more than it may spend. The rest takes
  the least number of replicas all the time, and as many replica-seconds as there is work left.

Events may be late as far as the quantile allows, and those of the last moments may be on their way
when the trace ends. An event that is overdue by then counts as late.
"""

from __future__ import annotations

import math

from elastream.control import Cycle
from elastream.core.stats import IntervalStats
from elastream.engines.simulation import Arrivals
from elastream.experiments.frontier import OBJECTIVE_MS, Race
from elastream.workloads.applications import twitter

QUANTILE = 0.99
SPREAD = 5.0
"""How many standard deviations a random number of events may be from what is expected."""


class GivenUp(Exception):  # noqa: N818
    """A run that has ended early."""

    def __init__(self, seconds: float, why: str) -> None:
        super().__init__(f"given up after {seconds:.0f} s: {why}")


class Hope:
    """Watches the run of one rival.

    Args:
        race: What it runs in.
        most: How many replica-seconds it may spend.
    """

    def __init__(self, race: Race, most: float) -> None:
        trace = race.trace
        events = float(trace.values.sum())
        chance = SPREAD * math.sqrt(events) if race.settings.arrivals is Arrivals.POISSON else 0.0
        moment = float(trace.rates.max()) * OBJECTIVE_MS / 1000
        self._operators = twitter().topology.by_name
        self._most = most
        self._late_allowed = (1 - QUANTILE) * (events + chance)
        self._due = QUANTILE * (events - chance) - moment
        """Events that every operator has to get through."""
        self._left = trace.duration
        self._late = self._spent = 0.0
        self._done = dict.fromkeys(self._operators, 0.0)

    def __call__(self, cycle: Cycle) -> None:
        """Take in a cycle.

        Raises:
            GivenUp: It can no longer win.
        """
        if cycle.stats is None:
            return
        self._take(cycle.stats)
        if self._late > self._late_allowed:
            raise GivenUp(cycle.time, "too late")
        if self._spent + self._least_for_the_rest() > self._most:
            raise GivenUp(cycle.time, "too expensive")

    def _take(self, stats: IntervalStats) -> None:
        self._left = max(self._left - stats.duration, 0.0)
        for name, of in stats.operators.items():
            self._spent += of.costing * stats.duration
            self._done[name] += of.processed
        if stats.latency and stats.latency.histogram:
            self._late += sum(
                events
                for seconds, events in stats.latency.histogram.items()
                if 1000 * seconds > OBJECTIVE_MS
            )

    def _least_for_the_rest(self) -> float:
        return sum(
            max(
                of.minimum * self._left,
                (of.execution_time or 0.0) * (self._due - self._done[name]),
            )
            for name, of in self._operators.items()
        )
