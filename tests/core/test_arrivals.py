import numpy as np
import pytest

from elastream.core.arrivals import LONGEST_SECONDS, dispersion, recent_arrivals


def poisson(rate, intervals, td=0.25, seed=0):
    return np.random.default_rng(seed).poisson(rate * td, intervals).astype(float).tolist()


def test_a_rate_that_stands_still_is_known_ever_better():
    found = recent_arrivals(poisson(2000, 128), [0.25] * 128)
    assert found.seconds == LONGEST_SECONDS
    assert found.rate == pytest.approx(2000, abs=3 * found.deviation)
    assert found.deviation == pytest.approx((2000 / 32) ** 0.5, rel=0.4)
    assert found.burstiness == pytest.approx(1.0, abs=0.4)


def test_a_jump_is_followed_at_once():
    found = recent_arrivals(poisson(4000, 1) + poisson(2000, 127), [0.25] * 128)
    assert found.seconds == 0.25
    assert found.rate == pytest.approx(4000, rel=0.1)


def test_a_steep_rise_is_not_averaged_away():
    counts = [0.25 * (3000 - 60 * 0.25 * number) for number in range(100)]
    assert recent_arrivals(counts, [0.25] * 100).rate >= 2900


def test_rates_are_events_by_the_time_over_which_they_were_counted():
    found = recent_arrivals([300.0, 100.0, 200.0, 100.0], [0.3, 0.1, 0.2, 0.1])
    assert found.rate == pytest.approx(1000)


def test_dispersion_does_not_see_a_rate_that_jumps_now_and_then():
    jumping = [number // 4 % 2 * 500.0 + 500.0 for number in range(80)]
    assert dispersion(jumping) == 0
    assert dispersion([1.0, 2.0]) == 1.0
    assert dispersion([0.0] * 20) == 1.0
