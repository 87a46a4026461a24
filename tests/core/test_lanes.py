import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from elastream.core.lanes import (
    TOLERANCE,
    assign,
    lane_count,
    lane_weights,
    lanes_by_owner,
    lanes_of_keys,
)
from support.lanes import moved

POOL = 8
REPLICAS = st.integers(0, POOL - 1)
ACTIVE = st.sets(REPLICAS, min_size=1)
NOBODY = -1


@st.composite
def situations(draw):
    """Who owned each lane, who is active now, and what each lane weighs."""
    count = draw(st.integers(1, 24))
    owners = draw(st.lists(st.integers(-1, POOL - 1), min_size=count, max_size=count))
    weights = draw(st.lists(st.floats(0.01, 1e5), min_size=count, max_size=count))
    return tuple(owners), sorted(draw(ACTIVE)), weights


def loads(owners, weights):
    found = {}
    for owner, weight in zip(owners, weights, strict=True):
        found[owner] = found.get(owner, 0.0) + weight
    return found


@given(situations())
def test_every_lane_has_an_active_owner_and_every_active_replica_a_lane(situation):
    owners, active, weights = situation
    after = assign(owners, active, weights)
    assert len(after) == len(owners)
    assert set(after) <= set(active)
    if len(owners) >= len(active):
        assert set(after) == set(active)


@given(situations(), st.randoms(use_true_random=False))
def test_the_order_in_which_replicas_are_named_does_not_matter(situation, choose):
    owners, active, weights = situation
    shuffled = list(active)
    choose.shuffle(shuffled)
    assert assign(owners, shuffled, weights) == assign(owners, active, weights)


@given(situations())
def test_nothing_moves_while_nobody_has_much_more_than_its_share(situation):
    owners, active, weights = situation
    owners = assign(owners, active, weights)
    share = sum(weights) / len(active)
    assume(max(loads(owners, weights).values()) <= (1 + TOLERANCE) * share)
    assume(set(owners) == set(active))
    assert assign(owners, active, weights) == owners


@given(situations())
def test_a_second_look_at_the_same_situation_settles(situation):
    owners, active, weights = situation
    once = assign(owners, active, weights)
    for _ in range(3):
        before, once = once, assign(once, active, weights)
    assert once == before


@given(situations())
def test_balancing_never_makes_the_fullest_replica_fuller(situation):
    owners, active, weights = situation
    owners = tuple(owner if owner in active else active[0] for owner in owners)
    assume(set(owners) == set(active))
    after = assign(owners, active, weights)
    assert max(loads(after, weights).values()) <= max(loads(owners, weights).values()) * (1 + 1e-9)


@given(st.integers(1, 6), ACTIVE, REPLICAS)
def test_a_replica_that_joins_takes_its_share_and_nothing_else_moves(each, active, joining):
    assume(joining not in active)
    lanes = each * (len(active) + 1) * len(active)
    weights = [1.0] * lanes
    before = assign((NOBODY,) * lanes, sorted(active), weights)
    after = assign(before, sorted({*active, joining}), weights)
    changed = moved(before, after)
    assert {after[lane] for lane in changed} == {joining}
    assert len(changed) <= lanes / (len(active) + 1)
    assert max(loads(after, weights).values()) <= (1 + TOLERANCE) * lanes / (len(active) + 1)


@given(st.integers(1, 6), st.sets(REPLICAS, min_size=2), st.data())
def test_when_a_replica_leaves_its_lanes_move_and_no_others(each, active, data):
    leaving = data.draw(st.sampled_from(sorted(active)))
    lanes = each * len(active) * (len(active) - 1)
    weights = [1.0] * lanes
    before = assign((NOBODY,) * lanes, sorted(active), weights)
    after = assign(before, sorted(active - {leaving}), weights)
    assert {before[lane] for lane in moved(before, after)} == {leaving}
    sizes = [len(of) for of in lanes_by_owner(after).values()]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(2, POOL), st.integers(1, POOL), st.sampled_from(["nobody", "one"]), st.data())
def test_heavy_lanes_are_apart(replicas, heavy, owned_by, data):
    """As long as there is a replica for each of them, wherever they come from."""
    assume(heavy <= replicas)
    lanes = 4 * replicas
    chosen = data.draw(st.permutations(range(lanes)))[:heavy]
    weights = [1000.0 if lane in chosen else 1.0 for lane in range(lanes)]
    before = (NOBODY if owned_by == "nobody" else 0,) * lanes
    after = assign(before, range(replicas), weights)
    assert len({after[lane] for lane in chosen}) == heavy
    if heavy < replicas:
        shares_with = [after.count(after[lane]) for lane in chosen]
        assert max(shares_with) <= 4, "light lanes go where there is room"


def test_one_heavy_lane_has_a_replica_of_its_own():
    weights = [100.0, *[1.0] * 15]
    after = assign((0,) * 16, [0, 3], weights)
    assert after.count(after[0]) == 1
    # And it stays: the heavy lane is more than its share, but nothing can be done about that.
    assert assign(after, [0, 3], weights) == after


def test_there_are_four_lanes_for_each_replica_unless_asked_for():
    assert (lane_count(8), lane_count(8, asked=10)) == (32, 10)


KEYS = st.one_of(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1), st.none(), st.booleans())


@given(st.lists(KEYS, min_size=1, max_size=30), st.integers(1, 100))
def test_the_lane_of_a_key_depends_on_nothing_but_the_key(keys, lanes):
    mixed = np.empty(len(keys), dtype=object)
    mixed[:] = keys
    found = lanes_of_keys(mixed, lanes)
    assert found.tolist() == [
        int(lanes_of_keys(mixed[i : i + 1], lanes)[0]) for i in range(len(keys))
    ]
    assert all(0 <= lane < lanes for lane in found)


@pytest.mark.parametrize("keys", [range(4000), [f"user {n}" for n in range(4000)]])
def test_keys_are_spread_over_all_lanes(keys):
    counts = np.bincount(lanes_of_keys(list(keys), 32), minlength=32)
    assert counts.min() > 60
    assert counts.max() < 200


LANES = 12
BY_LANE = st.dictionaries(st.integers(0, LANES - 1), st.floats(0, 1e6))


@given(BY_LANE, BY_LANE)
def test_a_keyed_lane_weighs_what_waits_in_it_and_what_came_to_it(queued, arriving):
    weights = lane_weights(queued, arriving, LANES, keyed=True)
    for lane, weight in enumerate(weights):
        assert weight == pytest.approx(queued.get(lane, 0.0) + arriving.get(lane, 0.0), abs=1e-5)
        assert weight > 0


@given(BY_LANE, BY_LANE)
def test_without_a_key_what_will_come_is_shared_evenly(queued, arriving):
    weights = lane_weights(queued, arriving, LANES, keyed=False)
    to_come = [weight - queued.get(lane, 0.0) for lane, weight in enumerate(weights)]
    assert to_come == pytest.approx([max(sum(arriving.values()), 1.0) / LANES] * LANES, abs=1e-3)
    assert min(weights) > 0
