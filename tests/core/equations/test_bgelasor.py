import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.equations import bgelasor
from elastream.core.equations.bgelasor import Prices
from elastream.errors import InvalidInputError

schedules = st.lists(st.integers(0, 50), min_size=1, max_size=30)


def test_a_small_schedule_worked_out_by_hand():
    # Replicas 2, 2, 5, 3: two changes of routing, three starts, two stops, twelve replicas kept.
    schedule = [2, 2, 5, 3]
    assert bgelasor.startups(schedule).tolist() == [0, 3, 0]
    assert bgelasor.shutdowns(schedule).tolist() == [0, 0, 2]
    assert bgelasor.reroutes(schedule).tolist() == [0, 1, 1]
    assert bgelasor.cost(schedule) == 12 * 8000 + 3 * 5000 + 2 * 5000 + 2 * 100
    # The load needs 1, 2, 4, 3: two replica-intervals are to spare.
    assert bgelasor.extra_cost(schedule, base=[1, 2, 4, 3]) == 2 * 8000 + 25_000 + 200


@given(schedules)
def test_the_extra_cost_is_the_cost_less_that_of_the_base(schedule):
    base = np.maximum(np.asarray(schedule) - 1, 0)
    prices = Prices()
    expected = bgelasor.cost(schedule, prices) - prices.replica * base.sum()
    assert bgelasor.extra_cost(schedule, base, prices) == pytest.approx(expected)


@given(schedules)
def test_starts_less_stops_are_the_whole_change(schedule):
    change = bgelasor.startups(schedule).sum() - bgelasor.shutdowns(schedule).sum()
    assert change == schedule[-1] - schedule[0]


def test_one_interval_has_no_change():
    assert bgelasor.cost([4]) == 32_000


def test_a_schedule_that_falls_short_is_refused():
    with pytest.raises(InvalidInputError, match="2 replicas short in interval 1"):
        bgelasor.extra_cost([3, 1], base=[2, 3])


@pytest.mark.parametrize("schedule", [[], [1, -1], [[1, 2]]])
def test_what_is_no_schedule_is_refused(schedule):
    with pytest.raises(InvalidInputError, match="one per interval"):
        bgelasor.cost(schedule)


def test_a_negative_price_is_refused_by_name():
    with pytest.raises(InvalidInputError, match="startup=-1"):
        Prices(startup=-1)
