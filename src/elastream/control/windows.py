"""Longer windows from shorter ones, for engines that report every sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from elastream.core.joining import joined
from elastream.core.stats import IntervalStats

_ROUNDING = 0.05
"""On a real clock, windows are never exactly as long as they should be."""


@dataclass
class InWindows:
    """Joins what it is told until that is as long as a window; then passes it on.

    Args:
        window: How long, in seconds; a sample that is longer is passed on as it is.
        watcher: Who wants to know.
    """

    window: float
    watcher: Callable[[IntervalStats], object]
    _parts: list[IntervalStats] = field(default_factory=list, init=False)

    def __call__(self, stats: IntervalStats) -> None:
        """Something was measured."""
        self._parts.append(stats)
        if sum(part.duration for part in self._parts) >= (1 - _ROUNDING) * self.window:
            self.watcher(joined(self._parts, self._parts[0].interval))
            self._parts.clear()
