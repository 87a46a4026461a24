"""Which events of a first-in first-out queue have waited too long."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class TimeOut:
    """Remembers how many events had come by when, as far back as the longest wait reaches."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._history: deque[tuple[float, float]] = deque()

    def expired(self, time: float, came: float, waiting: float) -> float:
        """Of the events that wait at a time, those that have waited too long by then.

        Args:
            time: The start of a step, later than all before it.
            came: How many events have come by then.
            waiting: How many of them still wait.
        """
        self.remember([time], [came])
        then, old = self._history[0]
        if then > time - self._longest:
            return 0.0
        return min(max(old - (came - waiting), 0.0), waiting)

    def strikes(self, times: Floats, came: Floats, waiting: Floats) -> bool:
        """Whether there is a time at which any event has waited too long; nothing is remembered."""
        if not waiting.any():
            return False
        history = np.array([*self._history, *zip(times.tolist(), came.tolist(), strict=True)])
        past = np.searchsorted(history[:, 0], times - self._longest, side="right") - 1
        old = np.where(past >= 0, history[past.clip(min=0), 1], 0.0)
        return bool((old > came - waiting).any())

    def remember(self, times: list[float], came: list[float]) -> None:
        """Take in what has come by these times; forget what no wait reaches back to."""
        self._history.extend(zip(times, came, strict=True))
        moment = times[-1] - self._longest
        while len(self._history) > 1 and self._history[1][0] <= moment:
            self._history.popleft()
