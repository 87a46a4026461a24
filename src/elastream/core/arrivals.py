"""How fast events arrive right now, and how certain that is, from recent counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median_low, pvariance

LONGEST_SECONDS = 32.0
"""How far back a rate is looked at."""
CONSISTENT = 4.0
"""Two halves are alike when they differ by at most this many standard deviations."""
CHANGED = 5.0
"""A rate has certainly changed when two halves differ by more standard deviations than this."""
BURSTIEST = 25.0
"""A stream counts as no burstier than this."""
LEAST_COUNTS = 8
"""With fewer, nobody knows how bursty a stream is."""
ALIKE = 0.25
"""By how much an interval may be longer or shorter than usual, to be compared with others."""
FEW = 25.0
"""Differences of whole numbers around a mean below this are too coarse to tell a spread."""
EVEN = 0.5
"""Small counts whose variance over mean is less than this are no Poisson process."""
LEAST_DIFFERENT = 1 / 3
"""Which share of the counts tells how bursty a stream is: those that differ least from the last."""
SCALE = 2 * 0.1855
"""The greatest squared difference among these, of normal numbers, relative to their variance."""

Counted = tuple[float, float]
"""Events, and the seconds in which they arrived."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The rate of an input that has not changed for a while."""

    rate: float
    """In events per second."""
    deviation: float
    """The standard error of the rate, in events per second."""
    usual: float
    """The rate over all the time that is looked at, in events per second."""
    seconds: float
    """How long it has not changed, in seconds."""
    burstiness: float
    """Variance over mean of a count: 0 for an even stream, 1 for a Poisson process."""
    changed: bool
    """Whether it has changed within the time that is looked at, or that time is too short to tell.

    A Poisson process hardly ever looks so by chance, even to those who look four times a second. An
    even stream counts as one here: whether it is even is known from a few counts only.
    """


def recent_arrivals(counts: Sequence[float], durations: Sequence[float]) -> Arrivals:
    """The rate over the longest recent time in which it has not changed.

    That time is doubled as long as the older half has the same rate as the newer one, up to the
    spread that counts have by chance. So a stable rate becomes known ever better, and a jump is
    followed at once.

    Args:
        counts: Events in each interval, newest first.
        durations: The length of each, in seconds.

    >>> recent_arrivals([900, 500, 500, 500], [1, 1, 1, 1]).rate
    900.0
    >>> recent_arrivals([510, 490, 503, 497], [1, 1, 1, 1]).rate
    500.0
    """
    burstiness = dispersion(_of_usual_length(counts, durations))
    pairs = list(_halves(counts, durations))
    events, seconds = float(counts[0]), float(durations[0])
    longest = pairs[-1] if pairs else ((events, seconds),)
    most, span = (math.fsum(part) for part in zip(*longest, strict=True))
    for newer, older in pairs:
        if _differ(newer, older, CONSISTENT**2 * burstiness):
            break
        events, seconds = newer[0] + older[0], newer[1] + older[1]
    return Arrivals(
        rate=events / seconds,
        usual=most / span,
        deviation=math.sqrt(burstiness * events) / seconds,
        seconds=seconds,
        burstiness=burstiness,
        changed=not pairs
        or any(_differ(newer, older, CHANGED**2 * max(burstiness, 1.0)) for newer, older in pairs),
    )


def _halves(
    counts: Sequence[float], durations: Sequence[float]
) -> Iterator[tuple[Counted, Counted]]:
    """The newer and the older half of ever longer times."""
    events, seconds, taken = float(counts[0]), float(durations[0]), 1
    while 2 * taken <= len(counts) and 2 * seconds <= LONGEST_SECONDS:
        before = math.fsum(counts[taken : 2 * taken])
        span = math.fsum(durations[taken : 2 * taken])
        yield (events, seconds), (before, span)
        events, seconds, taken = events + before, seconds + span, 2 * taken


def _differ(newer: Counted, older: Counted, variance: float) -> bool:
    """Whether two rates differ by more than counts of this variance, relative to their mean, do."""
    (events, seconds), (before, span) = newer, older
    deviation = math.sqrt(variance * (events / seconds**2 + before / span**2))
    return abs(events / seconds - before / span) > deviation


def dispersion(counts: Sequence[float]) -> float:
    """Variance over mean, from how much each count differs from the one before.

    The third of them that differ least tell: a rate that itself changes does not look like chance,
    even if it does so in every second interval. Without enough counts the stream is taken to be a
    Poisson process. Where they are small, most differences are 0 or 1, and the variance itself
    tells, as far as a Poisson process explains it.
    """
    mean = math.fsum(counts) / len(counts)
    if len(counts) < LEAST_COUNTS or mean <= 0:
        return 1.0
    squares = sorted([(a - b) ** 2 for a, b in itertools.pairwise(counts)])
    found = min(squares[int(LEAST_DIFFERENT * len(squares))] / (SCALE * mean), BURSTIEST)
    if mean < FEW:
        plain = pvariance(counts, mean) / mean
        return plain if plain < EVEN else min(max(plain, 1.0), max(found, 1.0))
    return found


def _of_usual_length(counts: Sequence[float], durations: Sequence[float]) -> list[float]:
    """The counts of intervals that are about as long as the latest ones usually were.

    Whoever switches to another policy may switch to much shorter intervals, too.
    """
    usual = median_low(durations[:LEAST_COUNTS])
    return [
        count
        for count, seconds in zip(counts, durations, strict=True)
        if abs(seconds - usual) <= ALIKE * usual
    ]
