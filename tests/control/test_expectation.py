"""How often what came was in the band, over a whole run."""

import numpy as np
import pytest

from elastream.control.expectation import BandQuality
from elastream.control.loop import Cycle, Outcome
from elastream.predictors import Forecast
from support.pipelines import interval, line

LINE = line("clean")


def cycle(number, events, td, sample, band=(90.0, 110.0)):
    """Of an input of `events` in the interval, with this band for a second of the next one."""
    ends = dict(zip((0.05, 0.95), (np.array([td * end]) for end in band), strict=True))
    forecast = Forecast(np.array([100.0 * td]), "basic", quantiles=ends)
    stats = interval(LINE, events, number=number, td=td, sample=sample)
    return Cycle(td * number, Outcome.UNCHANGED, stats=stats, forecast=forecast)


def test_intervals_are_compared_with_what_the_one_before_expected():
    cycles = [cycle(n, events, 3.0, 1.0) for n, events in enumerate((0, 300, 330, 360, 300))]
    assert BandQuality.over(cycles) == BandQuality(0.75, pytest.approx(1.75))


def test_what_was_not_expected_is_not_judged():
    nothing = Cycle(0.0, Outcome.SKIPPED)
    assert BandQuality.over([nothing, cycle(1, 300, 3.0, 1.0)]) is None


def test_short_intervals_are_compared_in_windows():
    # Three windows of 30 events each closed in every interval; they took 0.3 s each.
    cycles = [cycle(number, 90.0, 0.25, 0.3) for number in range(3)]
    quality = BandQuality.over(cycles)
    assert quality == BandQuality(1.0, pytest.approx(0.5))
