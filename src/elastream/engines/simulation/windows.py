"""What happened, told twice: at the end of every sampling window, and of every interval."""

from __future__ import annotations

from elastream.core.joining import joined
from elastream.core.stats import IntervalStats
from elastream.engines.base import Watcher, report_to
from elastream.errors import InvalidInputError


class WindowLog:
    """Collects stretches of time; a window or an interval that ends takes those that are its own.

    The two need not end together.
    """

    def __init__(self, watcher: Watcher, length: float) -> None:
        self._watchers = [watcher]
        self._length = length
        self._windows = 0
        self._of_window: list[IntervalStats] = []
        self._of_interval: list[IntervalStats] = []

    def listen(self, watcher: Watcher, length: float) -> None:
        """From now on, tell one more, of windows that are as long."""
        if length != self._length:
            raise InvalidInputError(
                f"a window of {length:g} s: another watcher has windows of {self._length:g} s"
            )
        self._watchers.append(watcher)

    def add(self, stretch: IntervalStats) -> None:
        """Some time has passed."""
        self._of_window.append(stretch)
        self._of_interval.append(stretch)

    def end_window(self) -> None:
        """Report to watchers."""
        parts, self._of_window = self._of_window, []
        window = joined(parts, self._windows)
        self._windows += 1
        report_to(self._watchers, window)

    def interval(self, number: int) -> IntervalStats:
        """Everything since the last interval; there is at least one stretch."""
        interval, self._of_interval = self._of_interval, []
        return joined(interval, number)
