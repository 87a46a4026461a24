"""Monitor: takes every interval's statistics from the engine, and remembers the recent ones."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from elastream.core.stats import IntervalStats
from elastream.engines.base import Engine
from elastream.errors import NotReadyError

REMEMBERED_INTERVALS = 500
REMEMBERED_SAMPLES = 10_000


class Monitor:
    """Watches an engine at the end of every interval."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._start = self._collected = engine.clock.now()
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

    def wait(self, td: float) -> bool:
        """Sleep until the interval is `td` seconds long; False when woken before."""
        end = self._start + td
        self._engine.clock.sleep_until(end)
        if self._engine.clock.now() < end:
            return False
        # Intervals that a slow cycle has missed are not made up for: the next one is longer.
        self._start = max(end, self._engine.clock.now())
        return True

    def collect(self) -> IntervalStats:
        """Take what the engine measured in the interval."""
        now = self._engine.clock.now()
        if now <= self._collected:
            raise NotReadyError("no time has passed since the last interval")
        self._collected = now
        stats = self._engine.observe()
        self._past.append(stats)
        self._samples.extend(stats.samples.tolist() or [stats.input])
        return stats
