"""How many events a replica should take at once: about 20 ms of work.

Calling a function costs something by itself, and on a busy machine waking up does, too. That part
does not grow with the events, and taking fewer of them does not make it smaller: it is told apart
from the work by a line through what units of different sizes have taken.
"""

from __future__ import annotations

WORK_SECONDS = 0.02
"""More saves overhead, less saves latency, and a lane that changes hands waits for it."""
MOST_EVENTS = 10_000
_KEPT = 0.9
"""How much of what was learned is kept after every unit."""
_LEAST_SLOPE = 1 / 16
"""An event takes at least this part of the average: a line through noise may fall."""
_TRIAL_EVERY, _TRIAL_SECONDS = 8, 0.1
"""One in this many units of one event is tried with two, unless an event takes this long."""


class UnitSize:
    """Learns from finished units; the newest count most.

    >>> size = UnitSize()
    >>> size.most
    1
    >>> for events in (1, 2, 18):
    ...     size.learn(events, seconds=0.030 + 0.001 * events)
    >>> size.most
    20

    Args:
        execution_time: What an event is said to take, in seconds.
    """

    def __init__(self, execution_time: float | None = None) -> None:
        self._units = self._events = self._squares = 0.0
        self._seconds = self._products = 0.0
        self._turn = 0
        self.most = 1 if execution_time is None else self._of_events_that_take(execution_time)
        """How many events to take next; one, while the cost of an event is unknown."""

    def learn(self, events: int, seconds: float) -> None:
        """A unit of this many events has taken this long."""
        self._units = _KEPT * self._units + 1
        self._events = _KEPT * self._events + events
        self._squares = _KEPT * self._squares + events * events
        self._seconds = _KEPT * self._seconds + seconds
        self._products = _KEPT * self._products + events * seconds
        self._turn += 1
        self.most = self._of_events_that_take(self._seconds_per_event())

    def _of_events_that_take(self, each: float) -> int:
        events = min(round(WORK_SECONDS / each), MOST_EVENTS) if each else MOST_EVENTS
        trial = events <= 1 and self._turn % _TRIAL_EVERY == 0 and each < _TRIAL_SECONDS
        return 2 if trial else max(events, 1)

    def _seconds_per_event(self) -> float:
        average = self._seconds / self._events
        spread = self._units * self._squares - self._events**2
        if spread <= 1e-9 * self._units * self._squares:
            return average
        slope = (self._units * self._products - self._events * self._seconds) / spread
        return min(max(slope, _LEAST_SLOPE * average), average)
