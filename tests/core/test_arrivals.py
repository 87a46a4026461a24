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


def test_chance_is_no_change_however_often_one_looks():
    counts = poisson(900, 8000)
    found = [recent_arrivals(counts[at : at + 128], [0.25] * 128) for at in range(8000 - 128)]
    assert not any(each.changed for each in found)
    assert any(each.seconds < LONGEST_SECONDS for each in found)


def test_a_change_is_remembered_for_as_long_as_the_rate_is_looked_at():
    def changed(seconds, rate=2500):
        now = int(4 * seconds)
        counts = poisson(rate, now) + poisson(2000, 128 - now)
        return recent_arrivals(counts, [0.25] * 128).changed

    assert not changed(0)
    assert changed(0.25, 3000)
    assert changed(2)
    assert changed(25)
    assert changed(10, 1800)


@pytest.mark.parametrize(("counts", "td"), [([500.0], 0.25), ([60_000.0] * 5, 30.0)])
def test_whoever_cannot_compare_takes_the_rate_for_changed(counts, td):
    assert recent_arrivals(counts, [td] * len(counts)).changed


def test_rates_are_events_by_the_time_over_which_they_were_counted():
    found = recent_arrivals([300.0, 100.0, 200.0, 100.0], [0.3, 0.1, 0.2, 0.1])
    assert found.rate == pytest.approx(1000)


@pytest.mark.parametrize("new", [4, 6, 30, 60, 100])
@pytest.mark.parametrize(("before", "now"), [(30.0, 0.25), (0.25, 30.0)])
def test_intervals_of_another_length_before_a_switch_do_not_count_as_bursts(new, before, now):
    counts = poisson(2000, new, now) + poisson(2000, 120 - new, before)
    found = recent_arrivals(counts, [now] * new + [before] * (120 - new))
    assert 0.5 < found.burstiness < 2
    assert found.rate == pytest.approx(2000, rel=0.05)


def test_one_interval_that_took_long_is_left_out():
    counts = poisson(2000, 70)
    expected = recent_arrivals(counts, [0.25] * 70).burstiness
    for place in (0, 10):
        late = [*counts[:place], 8000.0, *counts[place:]]
        durations = [0.25] * place + [4.0] + [0.25] * (70 - place)
        assert recent_arrivals(late, durations).burstiness == expected


def test_dispersion_does_not_see_a_rate_that_jumps_up_to_every_second_time():
    jumping = [number // 4 % 2 * 500.0 + 500.0 for number in range(80)]
    assert dispersion(jumping) == 0
    for odd in (0, 1):
        assert dispersion([number // 2 % 2 * 500.0 + 500.0 for number in range(80 + odd)]) == 0
    assert dispersion([1.0, 2.0]) == 1.0
    assert dispersion([0.0] * 20) == 1.0


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.8, 1.5, 6.0, 20.0])
def test_small_counts_tell_a_poisson_process(mean):
    counts = np.random.default_rng(1).poisson(mean, 128).astype(float)
    assert dispersion(counts.tolist()) == pytest.approx(1.0, abs=0.3)


def test_small_counts_tell_an_even_stream_but_no_steps():
    assert dispersion([1.0] * 20) == 0
    assert dispersion([number // 4 % 2 * 8.0 + 1.0 for number in range(80)]) == 1.0


def test_a_low_rate_is_that_of_a_long_time():
    """An interval of a quarter of a second has 0, 1, 2 or 3 events."""
    counts = poisson(3, 800)
    found = [recent_arrivals(counts[at : at + 128], [0.25] * 128) for at in range(800 - 128)]
    assert all(each.rate == pytest.approx(3, abs=2) for each in found)
    assert all(each.usual == pytest.approx(3, abs=2) for each in found)
    assert all(each.deviation > 0 and not each.changed for each in found)
