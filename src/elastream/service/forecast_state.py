"""How good the forecasts have been."""

from __future__ import annotations

from collections import deque
from typing import Any

from elastream.control import Cycle
from elastream.control.expectation import Banded, BandQuality, ExpectedRate, arrival_rate, is_short
from elastream.core.metrics import relative_error
from elastream.core.stats import IntervalStats

RECENT_INTERVALS = 20
RECENT_BANDS = 200
TRUSTED = 3
"""How many members of a family of models are named."""


class ForecastState:
    """Compares what was expected with what came: of every interval, or of every window.

    An interval that is shorter than a sampling window says little: then windows are compared.
    """

    def __init__(self) -> None:
        self.model: str | None = None
        self.expected: ExpectedRate | None = None
        self.fallbacks = 0
        self._last_fallback: str | None = None
        self._fallback: str | None = None
        """Of the newest forecast."""
        self._trusts: dict[str, float] = {}
        self._interval = 0.0
        self._pairs: deque[tuple[float, float]] = deque(maxlen=RECENT_INTERVALS)
        self._banded: deque[Banded] = deque(maxlen=RECENT_BANDS)

    def take(self, cycle: Cycle) -> None:
        """An interval has ended, and there is a forecast of the next one."""
        if cycle.stats is not None:
            if not is_short(cycle.stats.duration, cycle.stats.sample):
                self._compare(cycle.stats)
            self._interval = cycle.stats.duration
        self.expected = ExpectedRate.of(cycle)
        if cycle.forecast is not None:
            self.model = cycle.forecast.model
            self._trusts = dict(cycle.forecast.trusts)
            fallback = cycle.forecast.fallback
            if fallback is not None:
                # Between two windows, cycles see the forecast of the one before again.
                self.fallbacks += _has_news(cycle.stats) or fallback != self._fallback
                self._last_fallback = fallback
        self._fallback = cycle.forecast.fallback if cycle.forecast else None

    def look(self, window: IntervalStats) -> None:
        """A sampling window has ended."""
        if is_short(self._interval, window.sample):
            self._compare(window)

    def as_message(self) -> dict[str, Any]:
        """As the API returns it."""
        error = relative_error(*zip(*self._pairs, strict=True)) if self._pairs else None
        band = BandQuality.of(self._banded)
        most = sorted(self._trusts.items(), key=lambda member: -member[1])[:TRUSTED]
        return {
            "model": self.model,
            "recent_error": error,
            "coverage": band.coverage if band else None,
            "pinball": band.pinball if band else None,
            "trusts": dict(most),
            "fallbacks": self.fallbacks,
            "last_fallback": self._last_fallback,
        }

    def _compare(self, stats: IntervalStats) -> None:
        if self.expected is None:
            return
        truth = arrival_rate(stats)
        self._pairs.append((truth, self.expected.rate))
        if self.expected.band:
            self._banded.append((truth, *self.expected.band))


def _has_news(stats: IntervalStats | None) -> bool:
    """Whether a sampling window closed in the interval; it is one itself where there are none."""
    return stats is not None and (stats.sample is None or stats.samples.size > 0)
