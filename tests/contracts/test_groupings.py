"""What every grouping must do, whatever its idea."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.core.groupings import GROUPINGS, SHARED_QUEUE, Batch
from elastream.core.groupings.base import (
    ReplicaLoads,
    SketchReport,
    SyncReply,
    SyncRequest,
    Utilization,
)
from elastream.core.groupings.osg import Osg
from elastream.errors import InvalidInputError

POOL = 8
CELLS = Osg().family.shape
COUNTS = st.just(0.0) | st.floats(1, 100)
FEEDBACK = st.one_of(
    st.builds(
        Utilization,
        st.tuples(*[st.floats(0, 1)] * POOL),
        per_event=st.floats(0, 0.1),
    ),
    st.builds(
        ReplicaLoads,
        st.tuples(*[st.floats(0, 1e6)] * POOL),
        st.tuples(*[st.just(0.0) | st.floats(1e-6, 10)] * POOL),
        st.tuples(*[st.floats(0, 1)] * POOL),
        arriving=st.floats(0, 1e6),
        period=st.floats(0.01, 10),
    ),
    st.builds(
        SketchReport,
        st.integers(0, POOL - 1),
        COUNTS.map(lambda x: np.full(CELLS, x)),
        st.floats(0, 100).map(lambda x: np.full(CELLS, x)),
    ),
    st.builds(SyncReply, st.integers(0, POOL - 1), st.integers(0, 3), st.floats(-1, 1)),
)
ACTIVE = st.sets(st.integers(0, POOL - 1), min_size=1).map(sorted)
STEP = st.tuples(ACTIVE, st.lists(st.integers(0, 50), max_size=40), st.lists(FEEDBACK, max_size=3))


@pytest.fixture(params=GROUPINGS, scope="module")
def grouping(request):
    return GROUPINGS[request.param]()


def keys(values):
    return Batch.of(np.array(values, dtype=np.int64))


@given(steps=st.lists(STEP, min_size=1, max_size=6), producer=st.integers(0, 2 * POOL))
@settings(max_examples=40)
def test_every_event_goes_to_an_active_replica_or_to_the_shared_queue(grouping, steps, producer):
    state = grouping.start(POOL, producer)
    for active, values, reports in steps:
        routing = grouping.route(state, keys(values), active)
        assert len(routing.replicas) == len(values)
        assert set(routing.replicas.tolist()) <= {*active, SHARED_QUEUE}
        state = routing.state
        for report in reports:
            state = grouping.learn(state, report)


@given(
    steps=st.lists(st.tuples(ACTIVE, st.lists(FEEDBACK, max_size=3)), min_size=1, max_size=8),
    producer=st.integers(0, 2 * POOL),
)
@settings(max_examples=20)
def test_one_event_goes_where_a_batch_of_one_does(grouping, steps, producer):
    if grouping.needs_key:
        return  # It is asked for a batch with its key.
    alone = together = grouping.start(POOL, producer)
    for active, reports in steps:
        replica, alone = grouping.route_one(alone, active)
        (expected,), together, _ = grouping.route(together, Batch(1), active)
        assert replica == expected
        for report in reports:
            alone, together = grouping.learn(alone, report), grouping.learn(together, report)


def test_one_event_needs_an_active_replica(grouping):
    with pytest.raises(InvalidInputError):
        grouping.route_one(grouping.start(POOL), [])


@given(steps=st.lists(STEP, min_size=1, max_size=4))
@settings(max_examples=20)
def test_a_state_is_a_value_that_routing_and_learning_leave_as_it_was(grouping, steps):
    state = grouping.start(POOL)
    for active, values, reports in steps:
        before = copy.deepcopy(state)
        first = grouping.route(state, keys(values), active)
        for report in reports:
            grouping.learn(state, report)
        again = grouping.route(before, keys(values), active)
        np.testing.assert_array_equal(first.replicas, again.replicas)
        state = first.state


def test_producers_begin_with_different_replicas_or_all_agree(grouping):
    states = [grouping.start(POOL, producer) for producer in range(POOL)]
    chosen = {grouping.route(state, keys([7]), range(POOL)).replicas[0] for state in states}
    assert len(chosen) == (1 if grouping.name in ("key", "pull") else POOL)


def test_an_empty_batch_is_routed_nowhere(grouping):
    assert len(grouping.route(grouping.start(POOL), keys([]), [2]).replicas) == 0


def test_there_must_be_an_active_replica(grouping):
    with pytest.raises(InvalidInputError, match="no active replica"):
        grouping.route(grouping.start(POOL), keys([1]), [])


def test_a_grouping_that_needs_keys_says_so(grouping):
    routed = grouping.route(grouping.start(POOL), keys([1, 2]), [0])
    assert len(routed.replicas) == 2
    if grouping.needs_key:
        with pytest.raises(InvalidInputError, match=f"{grouping.name!r} needs a key"):
            grouping.route(grouping.start(POOL), Batch(2), [0])
    else:
        assert len(grouping.route(grouping.start(POOL), Batch(2), [0]).replicas) == 2


@given(feedback=FEEDBACK)
def test_a_grouping_leaves_alone_what_it_does_not_listen_to(grouping, feedback):
    state = grouping.route(grouping.start(POOL), keys([1, 2, 3]), range(POOL)).state
    if type(feedback) not in grouping.listens_to:
        assert grouping.learn(state, feedback) is state


def test_what_a_replica_says_is_what_the_grouping_listens_to(grouping):
    side = grouping.replica_side(3)
    if side is None:
        assert SketchReport not in grouping.listens_to
        return
    requests = [SyncRequest(position=0, replica=3, round_number=1, estimate=0.5)]
    heard = set()
    for _ in range(10):
        side, said = side.execute([1, 2] * 64, [0.001, 0.002] * 64, requests)
        heard |= {type(message) for message in said}
        assert {message.replica for message in said} <= {3}
    assert SketchReport in heard
    assert heard - {SyncReply} <= grouping.listens_to


def test_events_wait_together_if_the_grouping_says_so(grouping):
    routed = grouping.route(grouping.start(POOL), keys([1, 2]), [0, 1]).replicas
    assert (set(routed.tolist()) == {SHARED_QUEUE}) == grouping.shared_queue
