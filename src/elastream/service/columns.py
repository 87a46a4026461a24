"""The last hour of samples in columns, so that a page can show it at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastream.service.samples import PER_OPERATOR, WHOLE, Sample

KEPT_SECONDS = 3_600.0
MOST_ROWS = 36_000


class Columns:
    """A ring of rows, one for every sample. It is not thread-safe: hold a lock around calls.

    Args:
        operators: Their names.
        sample: The length of a sampling window, in seconds.
    """

    def __init__(self, operators: Sequence[str], sample: float) -> None:
        self._operators = tuple(operators)
        self._rows = min(math.ceil(KEPT_SECONDS / sample) + 1, MOST_ROWS)
        width = len(WHOLE) + len(PER_OPERATOR) * len(self._operators)
        # Seven digits are more than a chart shows, and make a short text.
        self._values = np.zeros((width, self._rows), dtype=np.float32)
        self._times = np.zeros(self._rows)
        self._added = 0
        self._edges: dict[str, float] = {}

    def add(self, sample: Sample) -> None:
        """Keep a sample, in place of the oldest when all rows are taken."""
        row = self._added % self._rows
        parts = [sample[name] for name in WHOLE]
        for name in self._operators:
            parts += [sample["operators"][name][part] for part in PER_OPERATOR]
        self._times[row] = sample["time"]
        # What is None becomes NaN.
        self._values[:, row] = np.array(parts, dtype=np.float64)
        self._edges = sample["edges"]
        self._added += 1

    def last(self, seconds: float = KEPT_SECONDS) -> dict[str, Any]:
        """The samples of the last `seconds`, oldest first: arrays under their names."""
        order = self._order()
        times = self._times[order]
        if len(times):
            first = int(np.searchsorted(times, times[-1] - seconds, side="right"))
            times, order = times[first:], order[first:]
        values = np.ascontiguousarray(self._values[:, order])
        found: dict[str, Any] = {"time": times}
        found |= zip(WHOLE, values, strict=False)
        rest = iter(values[len(WHOLE) :])
        found["operators"] = {
            name: {part: next(rest) for part in PER_OPERATOR} for name in self._operators
        }
        found["edges"] = dict(self._edges)
        return found

    def _order(self) -> NDArray[np.int64]:
        """The rows that are taken, oldest first."""
        if self._added <= self._rows:
            return np.arange(self._added)
        return (np.arange(self._rows) + self._added) % self._rows
