"""How good the forecasts have been."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from elastream.control import Cycle
from elastream.core.metrics import relative_error
from elastream.core.stats import IntervalStats
from elastream.predictors.accuracy import coverage, pinball
from elastream.predictors.quantiles import HIGH, LOW

RECENT_INTERVALS = 20
RECENT_BANDS = 200
TRUSTED = 3
"""How many members of a family of models are named."""


@dataclass(frozen=True, slots=True)
class ExpectedRate:
    """What is expected of the interval that runs, in events per second."""

    rate: float
    band: tuple[float, float] | None
    """The rate is between them nine times out of ten; None while unknown."""

    @classmethod
    def of(cls, cycle: Cycle) -> ExpectedRate | None:
        """What a cycle expects of the next interval."""
        made, stats = cycle.forecast, cycle.stats
        if made is None or stats is None:
            return None
        ends = [made.quantiles[p] for p in (LOW, HIGH) if p in made.quantiles]
        low, high = (float(end[0]) / stats.duration for end in ends) if ends else (0.0, 0.0)
        rate = float(made.values[0]) / stats.duration
        return cls(rate, (low, high) if ends else None)


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
        self._banded: deque[tuple[float, float, float]] = deque(maxlen=RECENT_BANDS)

    def take(self, cycle: Cycle) -> None:
        """An interval has ended, and there is a forecast of the next one."""
        if cycle.stats is not None:
            if not _is_short(cycle.stats.duration, cycle.stats.sample):
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
        if _is_short(self._interval, window.sample):
            self._compare(window)

    def as_message(self) -> dict[str, Any]:
        """As the API returns it."""
        error = relative_error(*zip(*self._pairs, strict=True)) if self._pairs else None
        held = lost = None
        if self._banded:
            truth, low, high = zip(*self._banded, strict=True)
            held = coverage(truth, low, high)
            lost = (pinball(truth, low, LOW) + pinball(truth, high, HIGH)) / 2
        most = sorted(self._trusts.items(), key=lambda member: -member[1])[:TRUSTED]
        return {
            "model": self.model,
            "recent_error": error,
            "coverage": held,
            "pinball": lost,
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


def arrival_rate(stats: IntervalStats) -> float:
    """Events that came to the sources, by the time over which they were counted, per second."""
    samples = stats.samples
    if len(samples) and not _is_short(stats.duration, stats.sample):
        seconds = len(samples) * stats.sample if stats.sample else stats.duration
        return float(samples.sum()) / seconds
    return stats.input / stats.duration


def _has_news(stats: IntervalStats | None) -> bool:
    """Whether a sampling window closed in the interval; it is one itself where there are none."""
    return stats is not None and (stats.sample is None or stats.samples.size > 0)


def _is_short(interval: float, window: float | None) -> bool:
    return window is not None and interval < 0.9 * window
