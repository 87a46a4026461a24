from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.core.equations.bgelasor import Prices, cost
from elastream.errors import InvalidInputError
from elastream.policies.oracle import Oracle
from support.pipelines import context, interval, line

ONE = line("work", pool=4)
PER_REPLICA = 3000
loads = st.lists(st.floats(0, 4), min_size=1, max_size=4)


def follow(loads, **settings):
    """The replicas in every interval of a run without a backlog, the first of which has one."""
    policy = Oracle(future=[0.0, *(load * PER_REPLICA for load in loads)], **settings)
    past, active = [], 1
    for number, events in enumerate(policy.future):
        past.append(interval(ONE, events, number=number, active=active))
        active = policy.decide(context(ONE, *past)).replicas["work"]
    return [stats.operators["work"].active for stats in past]


def leaves_a_backlog(schedule, loads):
    return any(n < load * (1 - 1e-9) for n, load in zip(schedule[1:], loads, strict=True))


@given(loads)
@settings(max_examples=40)
def test_no_schedule_without_a_backlog_has_fewer_replicas(loads):
    found = follow(loads)
    assert not leaves_a_backlog(found, loads)
    fewest = min(
        sum(rest)
        for rest in product(range(1, 5), repeat=len(loads))
        if not leaves_a_backlog([1, *rest], loads)
    )
    assert sum(found[1:]) == fewest


@given(loads, st.sampled_from([Prices(10, 3, 3, 1), Prices(10, 40, 20, 5), Prices(1, 9, 9, 50)]))
@settings(max_examples=40)
def test_no_schedule_without_a_backlog_is_cheaper(loads, prices):
    found = follow(loads, objective="cost", prices=prices)
    assert not leaves_a_backlog(found, loads)
    cheapest = min(
        cost([1, *rest], prices)
        for rest in product(range(1, 5), repeat=len(loads))
        if not leaves_a_backlog([1, *rest], loads)
    )
    assert cost(found, prices) == pytest.approx(cheapest)


def test_the_oracle_must_be_told_the_future():
    with pytest.raises(InvalidInputError, match="needs the future"):
        Oracle()
    with pytest.raises(InvalidInputError, match="objective='fame'"):
        Oracle(future=[1.0], objective="fame")


def test_it_knows_the_first_interval_before_anything_was_measured():
    two = line("a", "b")
    shares = {("in", "a"): 1.0, ("a", "b"): 0.5}
    first = Oracle([9_000, 0]).before(two, shares, {"a": 0.01, "b": 0.01}, td=30.0)
    assert first == {"a": 3, "b": 2}
