"""Real time, and sleep that can be cut short."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue


class Alarm:
    """Lets a thread sleep until another thread, or a signal handler, rings.

    >>> alarm = Alarm()
    >>> alarm.ring()
    >>> alarm.wait(60.0), alarm.wait(0.001)
    (True, False)
    """

    def __init__(self) -> None:
        # Of all ways to wait, only this one is safe in a signal handler.
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """End the sleep, or the next one if nobody sleeps."""
        self._rings.put(None)

    def wait(self, seconds: float) -> bool:
        """Sleep this long, or until it rings; returns whether it rang."""
        try:
            self._rings.get(timeout=max(seconds, 0.0))
        except Empty:
            return False
        return True


class WallClock:
    """Real time, from when the engine started.

    Args:
        now: What it shows first, in seconds.
    """

    def __init__(self, now: float = 0.0) -> None:
        self._start = time.monotonic() - now
        self._alarm = Alarm()

    def now(self) -> float:
        """Seconds since the start, or since when the clock showed 0."""
        return time.monotonic() - self._start

    def sleep_until(self, moment: float) -> None:
        """Sleep, unless woken."""
        if moment > self.now():
            self._alarm.wait(moment - self.now())

    def wake(self) -> None:
        """End the sleep."""
        self._alarm.ring()
