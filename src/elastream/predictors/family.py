"""Cheap models, each evaluated at many origins at once: what `auto` chooses from.

Most are a level and a trend, both weighted sums of the latest samples, so that one product of
matrices evaluates all of them at all origins:

| member | level | trend |
| --- | --- | --- |
| `last value` | the last sample | none |
| `mean of k` | the mean of the last k | none |
| `line through k` | of least squares through the last k | its slope |
| `smoothing a` | exponential smoothing with weight a | none |
| `damped trend a` | Holt's smoothing | damped in every step (Gardner and McKenzie 1985) |

Three repeat what was: `repeat` takes the last `horizon` samples once more, as `basic` does;
`season` takes the last season once more, and `shifted season` moves it to where the input is now.
How long a season is follows from the autocorrelation of the history.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from elastream.predictors.base import Samples
from elastream.predictors.linear import fit_line

STEPS = 60
"""How many steps ahead a trend continues; then it stays level."""
TAPS = 100
"""How many samples a level or a trend is made of."""
LONGEST_SEASON = 2048
"""A week of 5 minutes each."""
LEAST_CORRELATION = 0.3
"""Of a series with itself one season later: below it there is no season."""
AT_ONCE = 60
"""How many origins one product takes: small enough for BLAS to stay in this thread. Its threads
would wait for each other on the cores that the pipeline keeps busy, 70 times as long."""
SHIFT = 12
"""Over how many samples a season is compared with the one before."""


def family(history: Samples, origins: int, horizon: int) -> dict[str, Samples]:
    """What each member forecasts from the last `origins` samples: (origins, horizon).

    The last row is the forecast from the end of the history.
    """
    names, weights, gains = _filters()
    padded = np.concatenate([np.full(TAPS - 1, history[0]), history])
    windows = sliding_window_view(padded, TAPS)[-origins:]
    found = np.concatenate(
        [windows[first : first + AT_ONCE] @ weights for first in range(0, origins, AT_ONCE)]
    )
    levels, trends = found[:, : len(names)].T, found[:, len(names) :].T
    ahead = np.minimum(np.arange(horizon), STEPS - 1)
    made = levels[:, :, np.newaxis] + trends[:, :, np.newaxis] * gains[:, np.newaxis, ahead]
    members = dict(zip(names, made, strict=True))
    members["repeat"] = _again(history, origins, horizon, horizon)
    season = season_of(history)
    if season:
        members["season"] = _again(history, origins, horizon, season)
        members["shifted season"] = members["season"] + _shift(history, origins, season)
    return members


def season_of(history: Samples) -> int | None:
    """The length of the season in samples; None if there is none.

    A season is a peak of the autocorrelation of what a line leaves over, beyond the first lag at
    which it is negative; three seasons must be there, as two may be alike by chance.

    >>> season_of(np.sin(np.arange(300) * 2 * np.pi / 24))
    24
    >>> season_of(np.arange(300.0)) is None
    True
    """
    recent = history[-3 * LONGEST_SEASON :]
    count = len(recent)
    index = np.arange(count, dtype=np.float64)
    intercept, slope = fit_line(index, recent)
    rest = recent - intercept - slope * index
    power = np.abs(np.fft.rfft(rest, 2 * count)) ** 2
    lags = np.fft.irfft(power)[: count // 3 + 1]
    if lags[0] <= 1e-12 * float(recent @ recent) or len(lags) < 4:
        return None
    # Of later lags there are fewer pairs.
    correlation = lags / lags[0] * count / (count - np.arange(len(lags)))
    below = np.flatnonzero(correlation < 0)
    if not len(below):
        return None
    inner = correlation[1:-1]
    peak = (inner >= correlation[:-2]) & (inner > correlation[2:]) & (inner > LEAST_CORRELATION)
    peaks = np.flatnonzero(peak) + 1
    peaks = peaks[peaks > below[0]]
    return int(peaks[correlation[peaks].argmax()]) if len(peaks) else None


def _again(history: Samples, origins: int, horizon: int, season: int) -> Samples:
    """From every origin, the last `season` samples over and over; the last sample before that."""
    ends = np.arange(len(history) - origins, len(history))[:, np.newaxis]
    places = ends + 1 - season + np.arange(horizon) % season
    return history[np.where(places >= 0, places, ends)]


def _shift(history: Samples, origins: int, season: int) -> Samples:
    """How far the latest samples are from those one season earlier."""
    total = np.concatenate([[0.0], np.cumsum(history)])
    ends = np.arange(len(history) - origins, len(history)) + 1
    now = total[ends] - total[np.maximum(ends - SHIFT, 0)]
    then = total[np.maximum(ends - season, 0)] - total[np.maximum(ends - season - SHIFT, 0)]
    counted = np.where(ends >= season + SHIFT, SHIFT, np.inf)
    shift: Samples = ((now - then) / counted)[:, np.newaxis]
    return shift


@cache
def _filters() -> tuple[tuple[str, ...], Samples, Samples]:
    """Names; the weights of samples in levels, then in trends; what a trend gains in each step."""
    made: dict[str, tuple[Samples, Samples, float]] = {"last value": _smoothing(1.0, 0.0, 0.0)}
    for count in (3, 10, 30, TAPS):
        level = np.zeros(TAPS)
        level[-count:] = 1 / count
        made[f"mean of {count}"] = level, np.zeros(TAPS), 0.0
    for count in (3, 12, 30):
        made[f"line through {count}"] = *_line(count), 1.0
    for weight in (0.2, 0.5, 0.8):
        made[f"smoothing {weight}"] = _smoothing(weight, 0.0, 0.0)
    for weight, of_trend, damping in ((0.3, 0.05, 0.98), (0.5, 0.2, 0.9), (0.9, 0.5, 0.8)):
        made[f"damped trend {weight}"] = _smoothing(weight, of_trend, damping)
    levels, trends, dampings = zip(*made.values(), strict=True)
    steps = np.arange(1, STEPS + 1)
    powers = np.array(dampings, dtype=np.float64)[:, np.newaxis] ** steps
    gains: Samples = np.cumsum(powers, axis=1)
    return tuple(made), np.stack([*levels, *trends], axis=1), gains


def _line(count: int) -> tuple[Samples, Samples]:
    """A line by least squares: its value at the last sample, and its slope."""
    index = np.arange(count, dtype=np.float64)
    lines = [fit_line(index, unit) for unit in np.eye(count)]
    level, trend = np.zeros(TAPS), np.zeros(TAPS)
    level[-count:] = [intercept + slope * (count - 1) for intercept, slope in lines]
    trend[-count:] = [slope for _, slope in lines]
    return level, trend


def _smoothing(weight: float, of_trend: float, damping: float) -> tuple[Samples, Samples, float]:
    """Holt's method with a damped trend, as weights of the last samples.

    l_t = α·x_t + (1-α)·(l_t-1 + φ·b_t-1) and b_t = β·(l_t - l_t-1) + (1-β)·φ·b_t-1, from one sample
    of 1 among zeros. What is left for samples further back goes to the last one that is there.
    """
    level = trend = 0.0
    levels, trends = np.zeros(TAPS), np.zeros(TAPS)
    for lag in range(TAPS):
        before, going = level, damping * trend
        level = weight * (lag == 0) + (1 - weight) * (before + going)
        trend = of_trend * (level - before) + (1 - of_trend) * going
        levels[-1 - lag], trends[-1 - lag] = level, trend
    levels[0] += 1 - levels.sum()
    trends[0] -= trends.sum()
    return levels, trends, damping
