import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.queueing import wait_quantile

loads = st.tuples(st.floats(1, 1e5), st.floats(1e-5, 1e-2), st.integers(1, 64))


@pytest.mark.parametrize("utilization", [0.7, 0.9, 0.97])
def test_one_memoryless_replica_is_exact(utilization):
    # P(W > x) = ρ·e^(-(1-ρ)·x/et)
    expected = 0.001 / (1 - utilization) * math.log(utilization / 0.01)
    assert wait_quantile(1000 * utilization, 0.001, 1, 0.99) == pytest.approx(expected)


def test_several_replicas_are_close_to_erlang():
    # M/M/8 at 90 %: P(W > 0) = 0.7016 by Erlang's formula, so 99 % wait at most 5.31 et.
    assert wait_quantile(7200, 0.001, 8, 0.99) == pytest.approx(0.00531, rel=0.06)


@given(loads, st.floats(0.01, 100.0))
def test_more_replicas_never_wait_longer(load, within):
    rate, et, replicas = load
    fewer, more = (
        wait_quantile(rate, et, c, 0.99, within=within) for c in (replicas, replicas + 1)
    )
    assert 0 <= more <= fewer * (1 + 1e-9) + 1e-12


@given(loads)
def test_less_time_never_makes_the_wait_longer(load):
    waits = [wait_quantile(*load, 0.99, within=t) for t in (0.1, 1.0, 10.0, 100.0)]
    if load[0] * load[1] >= load[2]:
        assert waits == sorted(waits)
    assert all(wait <= wait_quantile(*load, 0.99) for wait in waits)


def test_an_even_stream_of_even_work_does_not_wait():
    assert wait_quantile(999, 0.001, 1, 0.99, arrivals=0.0, services=0.0) == 0


def test_nothing_waits_for_nothing():
    assert wait_quantile(0, 0.001, 1, 0.99) == wait_quantile(10, 0.0, 1, 0.99) == 0
