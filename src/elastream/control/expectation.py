"""What a cycle expects of the next interval, and whether it came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from elastream.control.loop import Cycle
from elastream.core.stats import IntervalStats
from elastream.predictors.accuracy import coverage, pinball
from elastream.predictors.quantiles import HIGH, LOW

Banded = tuple[float, float, float]
"""What came, and the ends of the 90 % band; in events per second."""


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


@dataclass(frozen=True, slots=True)
class BandQuality:
    """How good the 90 % band has been."""

    coverage: float
    """How often the input was within it."""
    pinball: float
    """The loss of its ends on average, in events per second."""

    @classmethod
    def of(cls, banded: Sequence[Banded]) -> BandQuality | None:
        """Of these, if there are any."""
        if not banded:
            return None
        truth, low, high = zip(*banded, strict=True)
        lost = (pinball(truth, low, LOW) + pinball(truth, high, HIGH)) / 2
        return cls(coverage(truth, low, high), lost)

    @classmethod
    def over(cls, cycles: Iterable[Cycle]) -> BandQuality | None:
        """Of a whole run, in intervals, or in sampling windows if these are longer."""
        banded: list[Banded] = []
        expected = None
        for cycle in cycles:
            if cycle.stats and expected and expected.band:
                banded += [(rate, *expected.band) for rate in _rates(cycle.stats)]
            expected = ExpectedRate.of(cycle)
        return cls.of(banded)


def _rates(stats: IntervalStats) -> list[float]:
    """Of an interval, or of the windows that closed in one that is shorter than they are."""
    if stats.sample and is_short(stats.duration, stats.sample):
        return [float(events) / stats.sample for events in stats.samples]
    return [arrival_rate(stats)]


def arrival_rate(stats: IntervalStats) -> float:
    """Events that came to the sources, by the time over which they were counted, per second."""
    samples = stats.samples
    if len(samples) and not is_short(stats.duration, stats.sample):
        seconds = len(samples) * stats.sample if stats.sample else stats.duration
        return float(samples.sum()) / seconds
    return stats.input / stats.duration


def is_short(interval: float, window: float | None) -> bool:
    """Whether an interval says little, as it is shorter than a sampling window."""
    return window is not None and interval < 0.9 * window
