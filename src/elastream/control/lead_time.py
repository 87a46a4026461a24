"""How long it takes from asking for a replica until it works: measured, not assumed."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from elastream.core.decision import Change
from elastream.core.stats import IntervalStats

WINDOW = 9
"""How many of the latest changes count."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Replicas that were asked for."""

    at: float
    replicas: int
    missing_at: float
    """When they were last seen missing."""


class LeadTimes:
    """The median lead time of every operator's latest replicas.

    A loop sees its replicas once an interval. A replica that is there at the first look came within
    an interval, and counts as 0: it is there by the time that the next decision is made.
    """

    def __init__(self) -> None:
        self._asked: dict[str, list[_Asked]] = {}
        self._taken: dict[str, deque[float]] = {}

    def ask(self, changes: Iterable[Change], now: float) -> None:
        """A plan was passed to the engine; what it requests again does not start a new wait."""
        for change in changes:
            asked = self._asked.pop(change.operator, [])
            kept = [each for each in asked if each.replicas <= change.after]
            if change.added > 0 and not any(each.replicas == change.after for each in kept):
                kept.append(_Asked(now, change.after, now))
            if change.added > 0:
                self._asked[change.operator] = kept

    def look(self, stats: IntervalStats, now: float) -> None:
        """See which of the requested replicas are there."""
        for name, asked in list(self._asked.items()):
            active = stats.operators[name].active
            for each in asked:
                if active >= each.replicas:
                    recent = self._taken.setdefault(name, deque(maxlen=WINDOW))
                    recent.append(each.missing_at - each.at)
            missing = [replace(each, missing_at=now) for each in asked if active < each.replicas]
            self._asked[name] = missing
            if not missing:
                del self._asked[name]

    @property
    def current(self) -> Mapping[str, float]:
        """In seconds, for the operators that have got a replica so far, or have waited for one."""
        waiting = {
            name: max(each.missing_at - each.at for each in asked)
            for name, asked in self._asked.items()
        }
        found = {name: statistics.median(recent) for name, recent in self._taken.items()}
        return {
            name: max(found.get(name, 0.0), waiting.get(name, 0.0))
            for name in found.keys() | waiting.keys()
        }
