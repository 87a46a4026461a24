import numpy as np

from elastream.core.groupings import Batch
from elastream.core.groupings.base import ReplicaLoads, SketchReport
from elastream.core.groupings.osg import Osg
from elastream.core.sketches import CountMin

OSG = Osg()


def report(replica, costs):
    """The sketches of a replica that saw every value once, at these costs."""
    values = np.array(list(costs))
    seconds = np.array(list(costs.values()))
    empty = CountMin.empty(OSG.family)
    return SketchReport(replica, empty.add(values).table, empty.add(values, seconds).table)


def route(state, values, active=(0, 1)):
    return OSG.route(state, Batch.of(np.array(values, dtype=np.int64)), list(active))


def knowing(*costs):
    """A producer that was told the costs of replicas, one after the other."""
    state = OSG.start(4)
    for replica, of in enumerate(costs):
        state = OSG.learn(state, report(replica, of))
    return state


def loads(queued, seconds=(1.0,) * 4, arriving=10.0):
    return ReplicaLoads(tuple(queued), tuple(seconds), (1.0,) * 4, arriving, period=1.0)


def test_while_nothing_is_known_it_goes_round():
    assert route(OSG.start(4, producer=1), [1, 5, 1, 5, 1]).replicas.tolist() == [1, 0, 1, 0, 1]


def test_each_event_goes_where_the_least_work_is():
    state = knowing({1: 1.0, 5: 5.0}, {1: 1.0, 5: 5.0})
    routing = route(state, [5, 1, 1, 1, 1, 1, 1])
    assert routing.replicas.tolist() == [0, 1, 1, 1, 1, 1, 0]
    assert routing.state.work[:2].tolist() == [6.0, 5.0]


def test_a_slow_replica_gets_fewer_events():
    state = knowing({1: 1.0}, {1: 3.0})
    assert np.bincount(route(state, [1] * 40).replicas).tolist() == [30, 10]


def test_a_value_never_seen_costs_the_mean():
    state = knowing({1: 1.0, 2: 3.0}, {1: 1.0, 2: 3.0})
    empty = CountMin.empty(OSG.family)
    unseen = next(v for v in range(10, 999) if empty.add([1, 2]).estimate([v]) == 0)
    assert route(state, [unseen]).state.work[0] == 2.0


def test_before_it_has_sketches_it_knows_how_quick_replicas_are_on_average():
    state = OSG.learn(OSG.start(4), loads([0] * 4, seconds=(1.0, 3.0, 0.0, 0.0)))
    assert np.bincount(route(state, [7] * 40).replicas).tolist() == [30, 10]


def test_who_is_behind_is_spared_by_this_producers_part_of_what_waits():
    state = knowing({1: 1.0}, {1: 1.0})
    state = route(state, [1] * 4).state
    state = OSG.learn(state, loads([10, 0, 0, 0]))
    # It sent 4 of the 10 events, and a report makes up for half: 2 of the 10 seconds.
    assert route(state, [1] * 4).replicas.tolist() == [1, 1, 0, 1]


def test_what_was_not_made_up_for_is_not_added_to_the_next_report():
    state = route(knowing({1: 1.0}, {1: 1.0}), [1] * 10).state
    for _ in range(5):
        state = OSG.learn(state, loads([10, 0, 0, 0]))
        state = route(state, [1]).state
    assert np.ptp(state.work[:2]) <= 6.0


def test_what_replicas_did_long_ago_does_not_count():
    state = route(knowing({1: 1.0}, {1: 1.0}), [1] * 1_000, active=[0]).state
    assert np.bincount(route(state, [1] * 10).replicas).tolist() == [5, 5]


def test_a_replica_that_joins_starts_level_and_borrows_the_others_costs():
    state = route(knowing({1: 1.0, 5: 5.0}, {1: 1.0, 5: 5.0}), [1] * 20).state
    routing = route(state, [5] * 6, active=(0, 1, 2))
    assert np.bincount(routing.replicas).tolist() == [2, 2, 2]
