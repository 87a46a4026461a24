import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.groupings import Batch
from elastream.core.groupings.key import Key
from elastream.core.groupings.shuffle import Shuffle


@given(st.lists(st.integers(0, 20), max_size=8))
def test_shuffle_goes_round_across_batches(counts):
    state, routed = 0, []
    for count in counts:
        routing = Shuffle().route(state, Batch(count), [1, 4, 6])
        state = routing.state
        routed += routing.replicas.tolist()
    assert routed == [[1, 4, 6][i % 3] for i in range(sum(counts))]


def where(keys, active):
    return Key().route(None, Batch.of(keys), active).replicas


def test_a_key_always_goes_to_the_same_replica():
    users = np.array(["ann", "bob", "cid", "ann", "bob"])
    replicas = where(users, [0, 1, 2, 3])
    assert replicas[0] == replicas[3]
    assert replicas[1] == replicas[4]


def test_keys_spread_evenly():
    counts = np.bincount(where(np.arange(40_000), range(8)))
    assert counts.min() > 4700
    assert counts.max() < 5300


def test_only_the_keys_of_a_replica_that_leaves_move():
    keys = np.arange(10_000)
    before, after = where(keys, [0, 1, 2, 3]), where(keys, [0, 1, 3])
    stayed = before != 2
    np.testing.assert_array_equal(before[stayed], after[stayed])
    assert set(after[~stayed].tolist()) == {0, 1, 3}
