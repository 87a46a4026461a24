import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.equations import autoscale_plus as eq


def test_equation_3_sums_the_regression_and_never_counts_below_zero():
    assert eq.estimated_received([10, 5, 0, -5]) == 15


def test_equation_4_multiplies_by_the_selectivity():
    assert eq.estimated_output(200, 0.25) == 50


def test_equation_5_combines_history_and_parents_and_adds_what_is_pending():
    assert eq.estimated_input(100, parents=[40, 80], pending=7) == 127
    assert eq.estimated_input(100, parents=[40, 80], pending=7, combine=min) == 107


def test_equation_5_without_parents_is_the_history_alone():
    assert eq.estimated_input(100, parents=[], pending=7, combine=min) == 107


def test_equations_6_and_9_a_period_divided_by_the_latency():
    assert eq.ideal_capacity(10, 0.004) == 2500
    assert eq.capacity(10, 0.004, cpu=0.5) == 1250


def test_events_that_take_no_time_leave_an_infinite_capacity():
    assert eq.ideal_capacity(10, 0) == math.inf
    assert eq.capacity(10, 0, cpu=0.0) == 0
    assert eq.ideal_degree(5, math.inf) == 0


def test_equation_7_worked_out_by_hand():
    # 0.3 * max(0.5, 0.4) + (1 - 0.2 - 0.1) / 3
    assert eq.usable_cpu(0.5, 0.4, used_by_others=[0.2, 0.1]) == pytest.approx(0.15 + 0.7 / 3)


@given(st.floats(0, 1), st.floats(0, 1), st.lists(st.floats(0, 1), max_size=8))
def test_no_replica_can_use_more_than_a_core(used, reserved, others):
    assert 0 <= eq.usable_cpu(used, reserved, others) <= 1


def test_equation_8_is_the_least_of_the_replicas():
    assert eq.operator_cpu([0.9, 0.4, 0.6]) == 0.4
    assert eq.operator_cpu([]) == 1


@pytest.mark.parametrize(
    ("ideal", "change"), [(5.1, True), (5.0, False), (4.0, False), (3.9, True)]
)
def test_equation_11_nothing_changes_inside_of_the_working_interval(ideal, change):
    assert eq.lower_bound(5, beta=0.8) == 4
    assert eq.must_change(ideal, degree=5, beta=0.8) is change


def test_equations_12_and_13_the_new_degree_counts_on_reservations_only():
    each = eq.reserved_capacity(10, 0.004, reserved=1.0, weight=0.3)
    assert each == pytest.approx(750)
    assert eq.new_degree(2000, each, minimum=1, pool=8) == 3
    assert eq.new_degree(1500, each, minimum=1, pool=8) == 2


def test_no_input_and_no_capacity_stay_in_bounds():
    assert eq.new_degree(0, 0.0, minimum=2, pool=8) == 2
    assert eq.new_degree(1, 0.0, minimum=2, pool=8) == 8
