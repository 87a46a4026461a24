"""Time that passes only when somebody waits for it."""

from __future__ import annotations


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
