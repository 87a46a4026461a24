import math

from hypothesis import given
from hypothesis import strategies as st

from elastream.core.equations import pa_sps

rates = st.floats(0, 1e12)
times = st.floats(0, 1e6)


def test_figure_4_three_operators_with_the_same_input_need_2_1_and_4_replicas():
    # td = 1,000 ms; execution times in the figure's proportion.
    needed = [pa_sps.replicas(10, et, 1000, minimum=1, pool=8) for et in (200, 100, 400)]
    assert needed == [2, 1, 4]


def test_a_whole_number_of_replicas_is_not_rounded_up_by_float_noise():
    assert 3 * 0.1 / 0.1 > 3
    assert pa_sps.replicas(3, 0.1, 0.1, minimum=1, pool=8) == 3


@given(rates, times, st.integers(1, 100), st.integers(0, 100))
def test_replicas_never_leave_the_pool(expected, et, minimum, more):
    pool = minimum + more
    assert minimum <= pa_sps.replicas(expected, et, 30.0, minimum, pool) <= pool


@given(rates, rates, times)
def test_replicas_grow_with_load(one, other, et):
    low, high = sorted((one, other))
    fewer = pa_sps.replicas(low, et, 30.0, 1, 1000)
    assert fewer <= pa_sps.replicas(high, et, 30.0, 1, 1000)


@given(st.integers(1, 10_000), st.floats(1e-6, 10))
def test_replicas_are_enough_and_not_one_too_many(expected, et):
    r = pa_sps.replicas(expected, et, 30.0, 1, 10**9)
    assert r * 30.0 >= expected * et * (1 - 1e-9)
    assert r == 1 or (r - 1) * 30.0 < expected * et


def test_idle_free_and_absurd_operators():
    assert pa_sps.replicas(0, 0.5, 30, minimum=2, pool=8) == 2
    assert pa_sps.replicas(1e6, 0.0, 30, minimum=2, pool=8) == 2
    assert pa_sps.replicas(math.inf, 0.5, 30, minimum=2, pool=8) == 8
    assert pa_sps.replicas(math.inf, 0.0, 30, minimum=2, pool=8) == 8


@given(rates, times)
def test_utilization_is_a_fraction(processed, et):
    assert 0 <= pa_sps.utilization(processed, et, 30.0) <= 1


def test_a_predecessor_that_processed_nothing_tells_no_share():
    assert pa_sps.output_share(received=0, processed=0, otherwise=0.25) == 0.25
    assert pa_sps.output_share(received=30, processed=120, otherwise=0.5) == 0.25


def test_queued_events_flow_down_in_proportion():
    assert pa_sps.queued_events(10, [(100, 0.2), (50, 1.0)]) == 80
    assert pa_sps.queued_events(10, []) == 10
