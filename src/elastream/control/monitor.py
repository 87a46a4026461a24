"""Monitor: takes every interval's statistics from the engine, and keeps the recent ones."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from elastream.core.stats import IntervalStats
from elastream.engines.base import Engine
from elastream.errors import NotReadyError
from elastream.policies.base import REMEMBERED_INTERVALS, REMEMBERED_SECONDS

REMEMBERED_SAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Sampled:
    """The input in sampling windows, whatever the length of an interval."""

    values: NDArray[np.float64]
    """Events in each of the recent windows, oldest first."""
    count: int
    """How many windows have closed since the start."""
    length: float
    """Of a window, in seconds."""
    open: float
    """How long the current window has been open, in seconds."""


class Monitor:
    """Watches an engine at the end of every interval."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._start = self._collected = engine.clock.now()
        self._past: deque[IntervalStats] = deque()
        self._past_seconds = 0.0
        self._samples: deque[float] = deque(maxlen=REMEMBERED_SAMPLES)
        self._closed = 0
        self._counted = 0.0
        """The seconds that all windows cover so far, including the open one."""
        self._open = 0.0
        self._has_windows = False

    @property
    def past(self) -> tuple[IntervalStats, ...]:
        """The recent intervals, oldest first."""
        return tuple(self._past)

    @property
    def sampled(self) -> Sampled:
        """The input in the recent sampling windows."""
        told = self._past[-1].sample if self._past else None
        # If the engine does not say, it follows from the time passed and the windows closed.
        length = told or self._counted / max(self._closed, 1)
        left = min(self._open, length) if told else 0.0
        return Sampled(np.array(self._samples), self._closed, length, left)

    def wait(self, td: float, until: float = inf) -> bool:
        """Sleep until the interval or the run ends; False if woken before.

        Intervals end at multiples of `td` of the engine's clock: however late cycles are, they do
        not drift. What would be left for less than half an interval belongs to the next one, and at
        the end of the run to the last one.
        """
        end = (math.floor(self._start / td + 0.5) + 1) * td
        if until - end < td / 2:
            end = until
        self._engine.clock.sleep_until(end)
        if self._engine.clock.now() < end:
            return False
        # Intervals that a slow cycle has missed are not repeated.
        self._start = max(end, self._engine.clock.now())
        return True

    def collect(self) -> IntervalStats:
        """Take what the engine measured in the interval."""
        now = self._engine.clock.now()
        if now <= self._collected:
            raise NotReadyError("no time has passed since the last interval")
        self._collected = now
        stats = self._engine.observe()
        self._remember(stats)
        self._take_samples(stats)
        return stats

    def _remember(self, stats: IntervalStats) -> None:
        self._past.append(stats)
        self._past_seconds += stats.duration
        while (
            len(self._past) > REMEMBERED_INTERVALS
            and self._past_seconds - self._past[0].duration >= REMEMBERED_SECONDS
        ):
            self._past_seconds -= self._past.popleft().duration

    def _take_samples(self, stats: IntervalStats) -> None:
        """The windows that have closed; without windows, the interval counts as one."""
        closed = stats.samples.tolist()
        if closed and not self._has_windows:
            self._has_windows = True
            self._samples.clear()
            self._closed, self._counted = 0, 0.0
        if not (closed or self._has_windows or stats.sample):
            closed = [stats.input]
        self._samples.extend(closed)
        self._closed += len(closed)
        self._counted += stats.duration
        self._open += stats.duration
        if stats.sample and closed:
            # However late a window closed, it was in this interval.
            left = self._open - len(closed) * stats.sample
            self._open = min(max(left, 0.0), stats.duration)
        if stats.open is not None:
            self._open = stats.open
