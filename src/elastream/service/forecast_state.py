"""How well the forecasts have been doing."""

from __future__ import annotations

from collections import deque
from typing import Any

from elastream.control import Cycle
from elastream.core.metrics import relative_error
from elastream.service.decisions import expected_rate
from elastream.service.samples import arrived

RECENT_INTERVALS = 20


class ForecastState:
    """Compares what was expected of every interval with what came."""

    def __init__(self) -> None:
        self.model: str | None = None
        self.rate: float | None = None
        """What is expected of the interval that runs, in events per second."""
        self.fallbacks = 0
        self._last_fallback: str | None = None
        self._pairs: deque[tuple[float, float]] = deque(maxlen=RECENT_INTERVALS)

    def take(self, cycle: Cycle) -> None:
        """An interval has ended, and there is a forecast of the next one."""
        if cycle.stats is not None and self.rate is not None:
            self._pairs.append((arrived(cycle.stats) / cycle.stats.duration, self.rate))
        self.rate = expected_rate(cycle)
        if cycle.forecast is not None:
            self.model = cycle.forecast.model
            if cycle.forecast.fallback is not None:
                self.fallbacks += 1
                self._last_fallback = cycle.forecast.fallback

    def told(self) -> dict[str, Any]:
        """As the API tells it."""
        error = relative_error(*zip(*self._pairs, strict=True)) if self._pairs else None
        return {
            "model": self.model,
            "recent_error": error,
            "fallbacks": self.fallbacks,
            "last_fallback": self._last_fallback,
        }
