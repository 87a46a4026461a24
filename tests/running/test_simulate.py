import math

import pytest

import elastream
from elastream.errors import InvalidInputError


@pytest.fixture
def pipeline():
    made = elastream.Pipeline("orders")
    orders = made.source("orders")
    made.add(len, name="price", after=orders, pool=8, execution_time=0.0013)
    return made


def test_policies_are_compared_in_one_call_each(pipeline):
    short = elastream.trace("spiky", duration=300)
    saved = {
        name: elastream.simulate(pipeline, short, policy=name).metrics.saved_resources
        for name in ("pa-sps", "presps", "oracle")
    }
    assert all(0 < share < 1 for share in saved.values())


def test_a_fixed_number_is_fixed_from_the_start(pipeline):
    result = elastream.simulate(
        pipeline,
        elastream.trace("step", duration=60),
        policy=elastream.policy("static", replicas=5),
    )
    assert [stats.operators["price"].active for stats in result.stats] == [5, 5]


def test_a_trace_is_cut_where_it_should_be_whatever_floats_make_of_it():
    assert len(elastream.trace("step", speed=10, duration=1.1).values) == 11


def test_guards_hold_in_a_simulation(pipeline):
    short = elastream.trace("spiky", duration=300)
    result = elastream.simulate(pipeline, short, guards=[elastream.guard("total-cap", most=1)])
    assert {stats.operators["price"].active for stats in result.stats} == {1}


@pytest.mark.parametrize("policy", ["slo", "pa-sps", "oracle"])
@pytest.mark.parametrize("wrong", [{"td": 0}, {"td": -1}, {"td": math.nan}, {"sample": 0}])
def test_times_that_are_none_are_refused_by_name(pipeline, policy, wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(InvalidInputError, match=f"{name}={value}: it must be above 0"):
        elastream.simulate(pipeline, "step", policy=policy, **wrong)


@pytest.mark.parametrize("option", ["speed", "scale", "duration"])
def test_a_trace_cannot_be_played_backwards(option):
    with pytest.raises(InvalidInputError, match=f"{option} -1"):
        elastream.trace("step", **{option: -1.0})


def test_a_trace_of_more_events_than_can_be_counted_is_refused():
    with pytest.raises(InvalidInputError, match="scale 1e\\+300: it makes more events"):
        elastream.trace("step", scale=1e300)
