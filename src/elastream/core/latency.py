"""Latencies as a histogram that can be added up: over replicas, over intervals, over a whole run.

Percentiles of parts do not give the percentile of the whole; counts per bin do. The bins grow by
2 %, so a percentile read from them is within 1 % of the true one, whatever its scale.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

_GROWTH = math.log(1.02)
_SHORTEST = 1e-6
"""Seconds. Whatever is shorter counts as this long."""


def bin_of(seconds: float) -> int:
    """The bin that holds a latency.

    >>> bin_of(0.010) == list(LatencyHistogram.of([0.010]).bins)[0]
    True
    """
    return round(math.log(max(seconds, _SHORTEST) / _SHORTEST) / _GROWTH)


def bin_start(number: int) -> float:
    """The shortest latency, in seconds, that a bin holds.

    >>> bin_of(bin_start(300) * 1.001), bin_of(bin_start(300) * 0.999)
    (300, 299)
    """
    return _SHORTEST * math.exp(_GROWTH * (number - 0.5))


@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """Events per bin; bin b holds the latencies around 1.02^b microseconds.

    >>> histogram = LatencyHistogram.of([0.010, 0.020, 0.020, 0.500])
    >>> round(histogram.quantile(0.5), 3), round(histogram.quantile(0.99), 2)
    (0.02, 0.5)
    """

    bins: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", MappingProxyType(dict(sorted(self.bins.items()))))

    @classmethod
    def of(cls, seconds: ArrayLike, weights: ArrayLike = 1.0) -> LatencyHistogram:
        """The histogram of these latencies, each of which stands for `weights` events."""
        lengths = np.maximum(np.asarray(seconds, dtype=np.float64), _SHORTEST)
        places = np.rint(np.log(lengths / _SHORTEST) / _GROWTH).astype(np.int64)
        counts = np.broadcast_to(np.asarray(weights, dtype=np.float64), lengths.shape)
        bins: defaultdict[int, float] = defaultdict(float)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            bins[place] += count
        return cls(bins)

    @classmethod
    def sum(cls, parts: Iterable[LatencyHistogram]) -> LatencyHistogram:
        """All parts together."""
        total: Counter[int] = Counter()
        for part in parts:
            total.update(part.bins)
        return cls(dict(total))

    @property
    def count(self) -> float:
        """How many events it holds."""
        return math.fsum(self.bins.values())

    @property
    def mean(self) -> float:
        """The mean latency in seconds, within 1 %; 0 without any."""
        if not self.bins:
            return 0.0
        total = math.fsum(n * seconds for seconds, n in self.items())
        return total / self.count

    def items(self) -> Iterator[tuple[float, float]]:
        """Every latency, in seconds, and how many events had it."""
        return ((_SHORTEST * math.exp(_GROWTH * b), n) for b, n in self.bins.items())

    def quantile(self, share: float) -> float:
        """The latency that this share of the events does not exceed, in seconds; 0 without any."""
        return self.quantiles(share)[0]

    def quantiles(self, *shares: float) -> list[float]:
        """The same for several shares."""
        if not self.bins:
            return [0.0] * len(shares)
        bins, reached = list(self.bins), list(accumulate(self.bins.values()))
        places = [bisect_left(reached, share * reached[-1] * (1 - 1e-12)) for share in shares]
        return [_SHORTEST * math.exp(_GROWTH * bins[min(p, len(bins) - 1)]) for p in places]
