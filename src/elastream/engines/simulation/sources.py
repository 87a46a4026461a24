"""What arrives at a source, what it sends, and what it holds back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elastream.engines.simulation.curves import FifoCurves, Grid
from elastream.engines.simulation.inputs import Input

Floats = NDArray[np.float64]


class SourceLog:
    """Counts the events of one source, in intervals and in sampling windows."""

    def __init__(self, events: Input, sample: float) -> None:
        self._input = events
        self._sample = sample
        self._windows = 0
        self._sampled = 0.0
        self._samples: list[float] = []
        self._came = np.zeros(1)
        self._held = self._sent = self._reported = 0.0

    def arrive(self, grid: Grid) -> Floats:
        """The events that arrive in every step of a grid."""
        arrivals = self._input.between(grid.times)
        self._came = self._came[-1] + np.concatenate([[0.0], arrivals.cumsum()])
        self._close_windows(grid.times)
        return arrivals

    def curves(self, grid: Grid, held: Sequence[float]) -> FifoCurves:
        """Arrived and sent; nothing is lost here."""
        if not any(held) and not self._held:
            self._sent = float(self._came[-1])
            return FifoCurves(grid.times, self._came, self._came, None, None, idle=True)
        sent = np.maximum.accumulate(self._came - np.concatenate([[self._held], held]))
        self._held = held[-1]
        self._sent = float(sent[-1])
        return FifoCurves(grid.times, self._came, sent, None, None, idle=False)

    def collect(self) -> tuple[float, float]:
        """Sent since the last call, and held back now."""
        sent, self._reported = self._sent - self._reported, self._sent
        return sent, self._held

    def samples(self) -> tuple[float, ...]:
        """The sampling windows that have ended since the last call."""
        ended, self._samples = tuple(self._samples), []
        return ended

    def _close_windows(self, times: Floats) -> None:
        last = int(np.floor(times[-1] / self._sample + 1e-9))
        ends = self._sample * np.arange(self._windows + 1, last + 1)
        totals = np.interp(ends, times, self._came)
        self._samples += np.diff(totals, prepend=self._sampled).tolist()
        if len(totals):
            self._windows, self._sampled = last, float(totals[-1])
