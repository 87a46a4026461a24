"""Time that passes only when somebody waits for it: at once, or at a pace to watch."""

from __future__ import annotations

import time
from collections.abc import Callable

from elastream.engines.base import Clock
from elastream.engines.clocks import Alarm
from elastream.errors import InvalidInputError

LATEST_SECONDS = 0.5
"""A delay beyond this many seconds is not made up for."""


class VirtualClock:
    """Seconds since the start of a simulation.

    >>> clock = VirtualClock()
    >>> clock.sleep_until(30.0)
    >>> clock.sleep_until(10.0)
    >>> clock.now()
    30.0
    """

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """The time."""
        return self._now

    def sleep_until(self, time: float) -> None:
        """Jump to that time, never back."""
        self._now = max(self._now, float(time))

    def wake(self) -> None:
        """Nobody sleeps for long."""


class PacedClock(VirtualClock):
    """Virtual time that takes real time: `speed` of its seconds pass in one."""

    def __init__(self, speed: float) -> None:
        if not 0 < speed < float("inf"):
            raise InvalidInputError(f"a speed of {speed:g}: it must be above 0")
        super().__init__()
        self._speed = speed
        self._alarm = Alarm()
        self._due = time.monotonic()

    def sleep_until(self, time: float) -> None:
        """Sleep, then be there exactly; one that is woken is on the way."""
        if time <= self._now:
            return
        began = self._wall()
        self._due = max(self._due, began - LATEST_SECONDS)
        if self._alarm.wait(self._due + (time - self._now) / self._speed - began):
            passed = max(self._wall() - self._due, 0.0) * self._speed
            time = min(self._now + passed, time)
        self._due += (time - self._now) / self._speed
        super().sleep_until(time)

    def wake(self) -> None:
        """End the sleep."""
        self._alarm.ring()

    def _wall(self) -> float:
        return time.monotonic()


class WindowClock:
    """A clock that calls `passed` at the end of every window, on the way to where it is to be."""

    def __init__(self, clock: Clock, window: float, passed: Callable[[], None]) -> None:
        self._clock = clock
        self._window = window
        self._passed = passed
        self._windows = int(clock.now() / window + 1e-9)

    def now(self) -> float:
        """The time."""
        return self._clock.now()

    def sleep_until(self, time: float) -> None:
        """Go from window to window; when woken, stop between them."""
        while self.now() < time:
            end = (self._windows + 1) * self._window
            goal = min(end, time)
            self._clock.sleep_until(goal)
            if self.now() >= end:
                self._windows += 1
                self._passed()
            if self.now() < goal:
                return

    def wake(self) -> None:
        """End the sleep."""
        self._clock.wake()
