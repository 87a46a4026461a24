"""How long the oldest waiting event has waited, from nothing but counts.

Events leave a queue in the order in which they came: if n have left, the oldest one that waits came
after n others. Where several replicas have their own queues, this is what it would be with one
queue. It is exact to the length of a sampling window.
"""

from __future__ import annotations

from collections import deque


class WaitingTime:
    """Follows one queue, window by window.

    >>> queue = WaitingTime()
    >>> queue.after(now=1.0, came=10, waits=10)
    1.0
    >>> queue.after(now=2.0, came=10, waits=15)
    2.0
    >>> queue.after(now=3.0, came=0, waits=5)
    2.0
    >>> queue.after(now=4.0, came=0, waits=0)
    0.0
    """

    def __init__(self, now: float = 0.0) -> None:
        self._before = now
        self._came: deque[list[float]] = deque()
        """When a window began, and how many of its events still wait; oldest first."""

    def after(self, now: float, came: float, waits: float) -> float:
        """The waiting time at the end of a window, in seconds.

        Args:
            now: When the window ended, in seconds.
            came: How many events came in it.
            waits: How many wait at its end.
        """
        self._came.append([self._before, came])
        self._before = now
        known = sum(events for _, events in self._came)
        if waits > known:  # They were there before anybody looked.
            self._came[0][1] += waits - known
        gone = known - waits
        while self._came and gone >= self._came[0][1]:
            gone -= self._came.popleft()[1]
        if not self._came:
            return 0.0
        self._came[0][1] -= max(gone, 0.0)
        return now - self._came[0][0] if waits > 0 else 0.0
