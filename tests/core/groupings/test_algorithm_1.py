import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.groupings import Batch
from elastream.core.groupings.algorithm_1 import Algorithm1
from elastream.core.groupings.base import Utilization
from elastream.core.groupings.shuffle import Shuffle

GROUPING = Algorithm1()


def measured(utilization, per_event, producer=0):
    state = GROUPING.start(len(utilization), producer)
    return GROUPING.learn(state, Utilization(tuple(utilization), per_event))


def algorithm_1(utilization, step, active, count, producer):
    """The paper's loop, event by event; of replicas alike, the producer's own comes first."""
    sent = [0] * len(utilization)
    turn, chosen = producer, []
    for _ in range(count):
        levels = {j: utilization[j] + sent[j] * step for j in active}
        lowest = min(active, key=lambda j: (levels[j], (j - producer) % len(utilization)))
        if levels[lowest] >= 1:
            chosen.append(active[turn % len(active)])
            turn += 1
        else:
            chosen.append(lowest)
            sent[lowest] += 1
    return chosen


@given(
    st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), min_size=6, max_size=6),
    st.floats(1e-4, 0.2),
    st.sets(st.integers(0, 5), min_size=1).map(sorted),
    st.lists(st.integers(0, 60) | st.just(1), min_size=1, max_size=4),
    st.integers(0, 9),
)
def test_a_batch_is_routed_as_algorithm_1_routes_event_by_event(
    levels, step, active, counts, producer
):
    state, routed = measured(levels, step, producer), []
    for count in counts:
        routing = GROUPING.route(state, Batch(count), active)
        state = routing.state
        routed += routing.replicas.tolist()
    assert routed == algorithm_1(levels, step, active, sum(counts), producer)


@given(st.floats(0, 1), st.floats(0, 0.1), st.integers(1, 8), st.integers(0, 200))
def test_under_equal_load_it_equals_round_robin(level, step, replicas, count):
    active = list(range(replicas))
    routed = GROUPING.route(measured([level] * replicas, step), Batch(count), active).replicas
    np.testing.assert_array_equal(routed, Shuffle().route(0, Batch(count), active).replicas)


def test_before_anything_is_measured_it_goes_round():
    routed = GROUPING.route(GROUPING.start(4), Batch(5), [0, 2, 3]).replicas
    assert routed.tolist() == [0, 2, 3, 0, 2]


def test_full_replicas_share_what_is_too_much():
    routed = GROUPING.route(measured([1.0, 1.0, 0.75], 0.125), Batch(6), [0, 1, 2]).replicas
    assert routed.tolist() == [2, 2, 0, 1, 2, 0]


def test_a_new_measurement_starts_over():
    state = GROUPING.route(measured([0.0, 0.5], 0.1), Batch(4), [0, 1]).state
    assert state.utilization.tolist() == [0.4, 0.5]
    state = GROUPING.learn(state, Utilization((0.9, 0.1), 0.1))
    assert state.utilization.tolist() == [0.9, 0.1]
