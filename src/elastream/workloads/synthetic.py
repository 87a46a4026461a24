"""Made-up inputs with the character of those that the papers use; the seed varies the details.

| name | after | step | length |
| --- | --- | --- | --- |
| `spiky` | the composed Twitter trace of PA-SPS: mean 2,300/s, peak 5,750/s | 1 s | 1,301 s |
| `raw` | the same before it was smoothed | 1 s | 1,301 s |
| `diurnal` | a service that people use by day | 60 s | 2 days |
| `dns` | the DNS traffic of PA-SPS: many short bursts over a low base | 1 s | 1 hour |
| `logs` | the system logs of PA-SPS: an even base with rare, high, short peaks | 1 s | 1,301 s |
| `progressive`, `erratic` | the two streams of DABS-Storm, figure 11 | 1 s | 20 minutes |
| `stable`, `periodic`, `fluctuating` | the three loads of BGElasor | 5 minutes | 60 days |
| `step`, `square`, `ramp` | what an engineer would try first; not random | 1 s | 10 minutes |
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elastream.workloads.traces import Trace, evenly

Floats = NDArray[np.float64]

DAY = 86_400.0
FIVE_MINUTES = 300.0
"""The step of BGElasor's loads, in seconds."""


def spiky(seed: int = 0) -> Trace:
    """Up-spikes and down-spikes in a row, smooth, with a calm end."""
    random = np.random.default_rng(seed)
    seconds = np.arange(1301.0)
    shape = np.full(len(seconds), 0.06)
    for centre, height, width in ((160, 0.62, 85), (480, 0.70, 95), (880, 1.0, 95)):
        moved = centre + random.uniform(-20, 20)
        shape += height * random.uniform(0.95, 1.05) * _bell(seconds, moved, width)
    dip = random.uniform(650, 690)
    shape *= 1 - 0.3 * _bell(seconds, dip, 35) - 0.3 * _bell(seconds, dip - 340, 30)
    shape *= 1 + 0.01 * random.standard_normal(len(seconds))
    return evenly(_scaled(shape, mean=2300.0, peak=5750.0, least=300.0))


def raw(seed: int = 0) -> Trace:
    """The spiky trace with the noise that smoothing takes away."""
    smooth = spiky(seed).values
    random = np.random.default_rng([seed, 1])
    wobble = np.exp(0.35 * _smooth(random, len(smooth), 8)) * random.gamma(8.0, 1 / 8, len(smooth))
    return evenly(np.minimum(smooth * wobble, 9000.0))


def diurnal(seed: int = 0) -> Trace:
    """Two days, each with a quiet night, a morning rise, and an evening peak."""
    random = np.random.default_rng(seed)
    times = np.arange(0, 2 * DAY, 60.0)
    hours = times / 3600 % 24
    # The evening does not end at midnight.
    evening = _bell(hours, 20.5, 2.0) + _bell(hours, -3.5, 2.0)
    shape = 0.15 + 0.6 * _bell(hours, 13, 3.5) + 0.8 * evening
    rate = 4000 * shape * (1 + 0.04 * _smooth(random, len(times), 15))
    return evenly(60.0 * rate, 60.0)


def dns(seed: int = 0) -> Trace:
    """A low base that wavers, and many bursts of a few seconds, some of them huge."""
    random = np.random.default_rng(seed)
    count = 3600
    base = 350 * np.exp(0.35 * _smooth(random, count, 120)) * random.gamma(2.0, 0.5, count)
    bursts = np.zeros(count)
    for start in np.flatnonzero(random.random(count) < 0.05):
        length = int(random.integers(1, 5))
        bursts[start : start + length] += 400 * (1 + random.pareto(1.6))
    return evenly(np.minimum(base + bursts, 12_000.0))


def logs(seed: int = 0) -> Trace:
    """An even base with noise, and a few peaks that are high and over at once."""
    random = np.random.default_rng(seed)
    rate = 1500 * (1 + 0.12 * _smooth(random, 1301, 40)) * random.gamma(30.0, 1 / 30, 1301)
    for start in random.choice(np.arange(60, 1240, 90), size=6, replace=False):
        length = int(random.integers(4, 15))
        rate[start : start + length] += random.uniform(2000, 4500)
    return evenly(rate)


def progressive(seed: int = 0) -> Trace:
    """A large rise, a plateau, and a fall back."""
    random = np.random.default_rng(seed)
    rate = np.interp(np.arange(1200.0), [0, 180, 480, 780, 1020, 1200], [80, 80, 800, 800, 80, 80])
    return evenly(rate * (1 + 0.02 * random.standard_normal(1200)))


def erratic(seed: int = 0) -> Trace:
    """Two sudden, brief peaks, and a third that lasts."""
    random = np.random.default_rng(seed)
    rate = np.full(1200, 120.0)
    for start, length, height in ((200, 40, 750), (480, 40, 900), (780, 200, 650)):
        moved = start + int(random.integers(-20, 21))
        rate[moved : moved + length] = height
    return evenly(rate * (1 + 0.04 * random.standard_normal(1200)).clip(min=0.0))


def stable(seed: int = 0) -> Trace:
    """Sixty days around one level."""
    random = np.random.default_rng(seed)
    count = int(60 * DAY / FIVE_MINUTES)
    return evenly(FIVE_MINUTES * 2000 * (1 + 0.03 * _smooth(random, count, 12)), FIVE_MINUTES)


def periodic(seed: int = 0) -> Trace:
    """Sixty days with a daily swing that is lower at week-ends."""
    random = np.random.default_rng(seed)
    times = FIVE_MINUTES * np.arange(60 * DAY / FIVE_MINUTES)
    swing = 0.55 - 0.45 * np.cos(2 * np.pi * (times % DAY) / DAY)
    weekend = np.where(times // DAY % 7 >= 5, 0.75, 1.0)
    noise = 1 + 0.04 * _smooth(random, len(times), 6)
    return evenly(FIVE_MINUTES * 4000 * swing * weekend * noise, FIVE_MINUTES)


def fluctuating(seed: int = 0) -> Trace:
    """Sixty days without a pattern: slow drifts, quick swings, sudden jumps."""
    random = np.random.default_rng(seed)
    count = int(60 * DAY / FIVE_MINUTES)
    jumps = np.repeat(random.uniform(-0.5, 0.5, count // 48 + 1), 48)[:count]
    level = 0.5 * _smooth(random, count, 288) + 0.25 * _smooth(random, count, 12) + jumps
    return evenly(FIVE_MINUTES * 2000 * np.exp(level), FIVE_MINUTES)


def _bell(where: Floats, centre: float, width: float) -> Floats:
    return np.exp(-0.5 * ((where - centre) / width) ** 2)


def _smooth(random: np.random.Generator, count: int, window: int) -> Floats:
    """Noise of unit variance that changes over `window` samples."""
    white = random.standard_normal(count + window - 1)
    noise: Floats = np.convolve(white, np.full(window, window**-0.5), mode="valid")
    return noise


def _scaled(shape: Floats, mean: float, peak: float, least: float) -> Floats:
    """The shape, stretched to this mean and peak."""
    stretch = (peak - mean) / (shape.max() - shape.mean())
    scaled: Floats = (mean + stretch * (shape - shape.mean())).clip(min=least)
    return scaled


LOW, HIGH, SECONDS = 1000.0, 4000.0, 600


def step(seed: int = 0) -> Trace:
    """One jump from low to high, half way through."""
    return evenly(np.where(np.arange(SECONDS) < SECONDS // 2, LOW, HIGH))


def square(seed: int = 0) -> Trace:
    """Low and high in turn, a minute each."""
    return evenly(np.where(np.arange(SECONDS) // 60 % 2 == 0, LOW, HIGH))


def ramp(seed: int = 0) -> Trace:
    """A steady rise from low to high."""
    return evenly(np.linspace(LOW, HIGH, SECONDS))
