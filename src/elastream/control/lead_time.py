"""How long it takes from asking for a replica until it works: measured, not assumed."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from elastream.core.lead_time import LeadTime
from elastream.core.stats import IntervalStats

WINDOW = 9
"""How many of the latest times count, of the first replica, of the second, and so on."""
LONGEST = 600.0
"""A wish that is older, in seconds, is not on its way: there is no room for it."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A replica that was asked for."""

    at: float
    missing_at: float
    """When it was last seen missing."""

    @property
    def waited(self) -> float:
        """So far, in seconds."""
        return self.missing_at - self.at


class LeadTimes:
    """The median lead time of every operator's latest replicas, by how many there were then.

    A fourth replica may come at once, and a fifth only with another executor: so each number of
    replicas has its own times, and one that was never asked for takes as long as the one below, or
    else as the first above that was. A wish that is not met within ten minutes is forgotten: a
    cluster that is full says nothing about how long a replica takes.

    A loop sees its replicas once an interval. A replica that is there at the first look came within
    an interval, and counts as 0: it is there by the time that the next decision is made.
    """

    def __init__(self) -> None:
        self._asked: dict[str, dict[int, _Asked]] = {}
        """By operator, and by which of its replicas it is, counted from 1."""
        self._taken: dict[str, dict[int, deque[float]]] = {}

    def ask(self, plan: Mapping[str, int], stats: IntervalStats, now: float) -> None:
        """A plan is in force: what it still asks for goes on waiting, what it gives up does not."""
        for name, count in plan.items():
            before = self._asked.pop(name, {})
            missing = range(stats.operators[name].active + 1, count + 1)
            if missing:
                self._asked[name] = {
                    number: before.get(number, _Asked(now, now)) for number in missing
                }

    def look(self, stats: IntervalStats, now: float) -> None:
        """See which of the requested replicas are there."""
        for name, asked in list(self._asked.items()):
            active = stats.operators[name].active
            taken = self._taken.setdefault(name, {})
            for number, each in asked.items():
                if number <= active and each.waited <= LONGEST:
                    taken.setdefault(number, deque(maxlen=WINDOW)).append(each.waited)
            missing = {
                number: replace(each, missing_at=now)
                for number, each in asked.items()
                if number > active
            }
            self._asked[name] = missing
            if not missing:
                del self._asked[name]

    @property
    def current(self) -> Mapping[str, LeadTime]:
        """For the operators that have got a replica so far, or have waited for one."""
        found = {name: self._levels(name) for name in self._taken.keys() | self._asked.keys()}
        return {name: lead for name, lead in found.items() if lead.levels}

    def _levels(self, name: str) -> LeadTime:
        taken = self._taken.get(name, {})
        asked = {
            number: each
            for number, each in self._asked.get(name, {}).items()
            if each.waited <= LONGEST
        }
        levels: list[tuple[int, float]] = []
        for number in sorted(taken.keys() | asked.keys()):
            seconds = statistics.median(taken[number]) if number in taken else 0.0
            if number in asked:
                seconds = max(seconds, asked[number].waited)
            if not levels or seconds != levels[-1][1]:
                levels.append((number - 1 if levels else 0, seconds))
        return LeadTime(tuple(levels))
