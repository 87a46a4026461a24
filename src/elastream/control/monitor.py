"""Monitor: takes every interval's statistics from the engine, and remembers the recent ones."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from elastream.core.stats import IntervalStats
from elastream.engines.base import Engine
from elastream.errors import InvalidInputError

REMEMBERED_INTERVALS = 500
REMEMBERED_SAMPLES = 10_000


class Monitor:
    """Watches an engine at the end of every interval of `td` seconds."""

    def __init__(self, engine: Engine, td: float) -> None:
        if not 0 < td < float("inf"):
            raise InvalidInputError(f"td={td} must be a number of seconds above 0")
        self._engine = engine
        self._td = td
        self._next = engine.clock.now() + td
        self._past: deque[IntervalStats] = deque(maxlen=REMEMBERED_INTERVALS)
        self._samples: deque[float] = deque(maxlen=REMEMBERED_SAMPLES)

    @property
    def past(self) -> tuple[IntervalStats, ...]:
        """The recent intervals, oldest first."""
        return tuple(self._past)

    @property
    def samples(self) -> NDArray[np.float64]:
        """The input in the recent sampling windows, in events, oldest first."""
        return np.array(self._samples)

    def collect(self) -> IntervalStats:
        """Wait for the end of the interval, then take what the engine measured in it."""
        self._engine.clock.sleep_until(self._next)
        # Intervals that a slow cycle has missed are not made up for: the next one is longer.
        self._next = max(self._next, self._engine.clock.now()) + self._td
        stats = self._engine.observe()
        self._past.append(stats)
        self._samples.extend(stats.samples.tolist() or [stats.input])
        return stats
