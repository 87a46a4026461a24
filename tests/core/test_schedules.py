from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.core.equations.bgelasor import Prices, cost
from elastream.core.schedules import balanced_schedule, cheapest_schedule, proactive_schedule

needs = st.lists(st.integers(1, 4), min_size=2, max_size=5)
price = st.sampled_from([0.0, 1.0, 3.0, 10.0, 100.0])
prices = st.builds(Prices, price, price, price, price)


def square_wave(low, high, half, periods):
    return ([low] * half + [high] * half) * periods


def test_step_1_starts_before_a_rise_and_stops_after_a_fall():
    assert proactive_schedule(2, [2, 2, 5, 3, 1]).tolist() == [2, 2, 5, 5, 3]


def test_step_2_merges_starts_when_a_change_of_routing_is_dear():
    rising = [1, 2, 3, 3]
    cheap, dear = Prices(10, 0, 0, reroute=5), Prices(10, 0, 0, reroute=15)
    assert balanced_schedule(1, rising, cheap).tolist() == [1, 2, 3, 3]
    assert balanced_schedule(1, rising, dear).tolist() == [1, 3, 3, 3]


def test_step_2_merges_stops_when_a_change_of_routing_is_dear():
    falling = [3, 3, 2, 1, 1, 1]
    cheap, dear = Prices(10, 0, 0, reroute=5), Prices(10, 0, 0, reroute=15)
    assert balanced_schedule(3, falling, cheap).tolist() == [3, 3, 3, 2, 1, 1]
    assert balanced_schedule(3, falling, dear).tolist() == [3, 3, 3, 3, 1, 1]


def test_step_3_keeps_replicas_over_a_short_dip():
    dip = [4, 1, 1, 1, 4, 4]
    # From the fall to the rise it would stop three for two intervals.
    assert proactive_schedule(4, dip).tolist() == [4, 4, 1, 1, 4, 4]
    assert balanced_schedule(4, dip, Prices(10, 15, 10, 0)).tolist() == [4, 4, 4, 4, 4, 4]
    assert balanced_schedule(4, dip, Prices(10, 10, 5, 0)).tolist() == [4, 4, 1, 1, 4, 4]


@given(needs, prices)
def test_every_schedule_has_what_each_interval_needs(need, paid):
    for schedule in (
        proactive_schedule(need[0], need),
        balanced_schedule(need[0], need, paid),
        cheapest_schedule(need[0], need, 4, paid),
    ):
        assert schedule[0] == need[0]
        assert np.all(schedule >= need)


@given(needs, prices)
def test_balancing_never_costs_more_and_the_dynamic_programme_least(need, paid):
    simple = cost(proactive_schedule(need[0], need), paid)
    balanced = cost(balanced_schedule(need[0], need, paid), paid)
    cheapest = cost(cheapest_schedule(need[0], need, 4, paid), paid)
    assert cheapest <= balanced + 1e-9
    assert balanced <= simple + 1e-9


@pytest.mark.parametrize("paid", [Prices(a, b, c, d) for a, b, c, d in product((1, 20), repeat=4)])
@pytest.mark.parametrize("half", [1, 2, 5])
def test_on_a_square_wave_cba_is_between_spea_and_the_limit(half, paid):
    need = square_wave(2, 6, half, periods=4)
    simple = cost(proactive_schedule(2, need), paid)
    balanced = cost(balanced_schedule(2, need, paid), paid)
    assert cost(cheapest_schedule(2, need, 8, paid), paid) <= balanced <= simple


@given(needs, st.integers(1, 4), prices)
@settings(max_examples=60)
def test_the_dynamic_programme_equals_brute_force(need, now, paid):
    found = cost(cheapest_schedule(now, need, 4, paid), paid)
    best = min(
        cost([now, *rest], paid)
        for rest in product(range(5), repeat=len(need) - 1)
        if all(n >= least for n, least in zip(rest, need[1:], strict=True))
    )
    assert found == pytest.approx(best)


def test_a_need_beyond_the_pool_gets_the_pool():
    assert cheapest_schedule(1, [1, 9, 1], 3).tolist()[1] == 3
