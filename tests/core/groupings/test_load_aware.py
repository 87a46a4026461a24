from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.groupings import Batch
from elastream.core.groupings.base import ReplicaLoads
from elastream.core.groupings.load_aware import LoadAware
from elastream.core.groupings.shares import (
    in_shares,
    least_delay,
    level_after,
    one_in_shares,
)
from elastream.core.groupings.shuffle import Shuffle
from elastream.core.stats import OperatorStats, ReplicaStats

GROUPING = LoadAware()
SPEEDS = st.lists(st.floats(0.1, 100), min_size=1, max_size=8).map(np.array)


def loads(seconds, queued=None, busy=0.9, arriving=1_000.0):
    count = len(seconds)
    return ReplicaLoads(
        tuple(queued or [0.0] * count), tuple(seconds), (busy,) * count, arriving, 1
    )


def dealt(state, count, active):
    return np.bincount(GROUPING.route(state, Batch(count), active).replicas, minlength=len(active))


@given(st.integers(1, 8), st.lists(st.integers(0, 60), max_size=5), st.integers(0, 9))
def test_replicas_that_are_alike_are_served_in_turn(replicas, counts, producer):
    active = range(replicas)
    ours, theirs = GROUPING.start(replicas, producer), Shuffle().start(replicas, producer)
    ours = GROUPING.learn(ours, loads([0.002] * replicas))
    for count in counts:
        mine, turn = (
            GROUPING.route(ours, Batch(count), active),
            Shuffle().route(theirs, Batch(count), active),
        )
        np.testing.assert_array_equal(mine.replicas, turn.replicas)
        ours, theirs = mine.state, turn.state


def test_at_full_load_shares_go_by_speed():
    state = GROUPING.learn(GROUPING.start(3), loads([0.001, 0.001, 0.002], arriving=2_500.0))
    assert dealt(state, 500, [0, 1, 2]).tolist() == [200, 200, 100]


def test_when_there_is_little_to_do_the_slow_one_is_spared_but_not_forgotten():
    state = GROUPING.learn(GROUPING.start(3), loads([0.001, 0.001, 0.003], arriving=300.0))
    slow = dealt(state, 1_000, [0, 1, 2])[2]
    assert 1 <= slow <= 10


def test_who_is_behind_gets_less_until_that_is_made_up_for():
    behind = loads([0.001, 0.001], queued=[400.0, 0.0], busy=1.0)
    state = GROUPING.start(2)
    state = GROUPING.route(state, Batch(1_000), [0, 1]).state
    state = GROUPING.learn(state, behind)
    assert dealt(state, 2_000, [0, 1]).tolist() == [800, 1_200]
    state = GROUPING.route(state, Batch(2_000), [0, 1]).state
    assert dealt(state, 1_000, [0, 1]).tolist() == [500, 500]


def test_a_producer_makes_up_for_its_own_part_only():
    behind = loads([0.001, 0.001], queued=[400.0, 0.0], busy=1.0)
    state = GROUPING.route(GROUPING.start(2), Batch(250), [0, 1]).state
    state = GROUPING.learn(state, behind)
    first = GROUPING.route(state, Batch(500), [0, 1])
    assert np.bincount(first.replicas).tolist() == [200, 300]
    assert dealt(first.state, 500, [0, 1]).tolist() == [250, 250]


def test_a_queue_that_is_gone_before_anybody_can_act_is_no_backlog():
    state = GROUPING.route(GROUPING.start(2), Batch(1_000), [0, 1]).state
    state = GROUPING.learn(state, loads([0.001, 0.001], queued=[400.0, 0.0], busy=0.5))
    assert dealt(state, 1_000, [0, 1]).tolist() == [500, 500]


def test_a_replica_that_joins_is_taken_to_be_as_quick_as_the_others():
    state = GROUPING.learn(GROUPING.start(3), loads([0.002, 0.002, 0.0]))
    assert dealt(state, 900, [0, 1, 2]).tolist() == [300, 300, 300]


def test_units_of_events_are_routed_as_their_events_are():
    report = loads([0.001, 0.003], queued=[180.0, 90.0])
    unit = report.in_units(18)
    assert unit.queued == (10.0, 5.0)
    assert unit.per_event == pytest.approx((0.018, 0.054))
    assert unit.arriving * 18 == pytest.approx(report.arriving)


def test_loads_are_read_from_what_an_engine_measures():
    stats = OperatorStats(
        received=500,
        processed=300,
        emitted=300,
        queued=1_000,
        busy=0.9,
        active=2,
        replicas={0: ReplicaStats(100, 0.4, queued=1_000), 2: ReplicaStats(200, 0.5, queued=0)},
    )
    report = ReplicaLoads.of(stats, pool=3, seconds=2.0)
    assert report.queued == (1_000, 0, 0)
    # The first had work for more than the period: all of it went into its events.
    assert report.per_event == pytest.approx((0.02, 0.0, 0.0025))
    assert report.utilization == pytest.approx((0.2, 0.0, 0.25))
    assert report.arriving == 250


@given(SPEEDS, st.floats(0, 2))
def test_the_least_delay_is_that_of_no_other_split(speeds, load):
    arriving = load * speeds.sum()
    shares = least_delay(speeds, arriving)
    assert shares.sum() == pytest.approx(1)
    assert (shares > 0).all()
    if load >= 1:
        np.testing.assert_allclose(shares, speeds / speeds.sum(), rtol=1e-6, atol=0.02)
        return
    order = np.argsort(speeds)
    assert (np.diff(shares[order]) >= -1e-9).all()

    def delay(given):
        left = speeds - arriving * given
        return np.inf if (left <= 0).any() else float((given / left).sum())

    for slower, faster in pairwise(order):
        other = shares.copy()
        moved = 0.01 * shares[faster]
        other[faster] -= moved
        other[slower] += moved
        if shares[slower] > 0.03 / len(speeds):
            assert delay(other) >= delay(shares) * (1 - 1e-3)


@given(SPEEDS, st.floats(0.1, 100))
def test_what_is_poured_in_is_all_there_and_stands_level(areas, volume):
    levels = np.linspace(0, 3, len(areas))
    given_ = level_after(levels, areas, volume)
    assert given_.sum() == pytest.approx(volume)
    heights = (levels + given_ / areas)[given_ > 1e-9]
    assert np.ptp(heights) < 1e-6


@given(SPEEDS, st.lists(st.integers(0, 40), min_size=1, max_size=10))
def test_after_any_number_of_events_each_has_its_share(speeds, counts):
    shares = speeds / speeds.sum()
    credit, got = np.zeros(len(shares)), np.zeros(len(shares))
    for count in counts:
        rows, credit = in_shares(shares, credit, np.arange(len(shares)), count)
        assert len(rows) == count
        got += np.bincount(rows, minlength=len(shares))
        assert np.abs(got - shares * got.sum()).max() < len(shares)


@given(SPEEDS, st.integers(1, 60), st.integers(0, 9))
def test_events_that_are_dealt_one_by_one_go_where_they_would_together(speeds, count, first):
    """And if some are to get nothing, they do."""
    speeds[1::3] = 0.0
    shares, places = speeds / speeds.sum(), (np.arange(len(speeds)) - first) % len(speeds)
    together, alone = np.zeros(len(shares)), [0.0] * len(shares)
    for _ in range(count):
        (expected,), together = in_shares(shares, together, places, 1)
        found, alone = one_in_shares(shares.tolist(), alone, places.tolist())
        assert (found, alone) == (expected, together.tolist())
