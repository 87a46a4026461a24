import numpy as np
import pytest

from elastream.core.groupings import Batch
from elastream.core.groupings.base import SketchReport, SyncReply
from elastream.core.groupings.osg_published import OsgPublished, Phase
from elastream.core.groupings.osg_replica import OsgReplica
from elastream.core.groupings.shuffle import Shuffle
from elastream.core.sketches import CountMin

OSG = OsgPublished()


def report(replica, costs):
    """The sketches of a replica that saw every value once, at these costs."""
    values = np.array(list(costs))
    seconds = np.array(list(costs.values()))
    empty = CountMin.empty(OSG.family)
    return SketchReport(replica, empty.add(values).table, empty.add(values, seconds).table)


def route(state, values, active=(0, 1)):
    return OSG.route(state, Batch.of(np.array(values)), list(active))


def running(costs=None):
    """A scheduler of two replicas in RUN, with nothing on either."""
    state = route(OSG.start(4), [1]).state
    for replica in (0, 1):
        state = OSG.learn(state, report(replica, costs or {1: 1.0, 5: 5.0}))
    routing = route(state, [1, 1])
    state = routing.state
    for request in routing.requests:
        state = OSG.learn(
            state, SyncReply(request.replica, request.round_number, -request.estimate)
        )
    assert state.phase is Phase.RUN
    assert state.work.tolist() == [0, 0, 0, 0]
    return state


def test_the_scheduler_goes_round_until_every_active_replica_has_reported():
    state = OSG.start(4)
    routing = route(state, [1, 5, 1, 5, 1])
    assert routing.replicas.tolist() == [0, 1, 0, 1, 0]
    state = OSG.learn(routing.state, report(0, {1: 1.0}))
    assert state.phase is Phase.ROUND_ROBIN
    state = OSG.learn(state, report(1, {1: 1.0}))
    assert state.phase is Phase.SEND_ALL


def test_then_it_asks_every_replica_along_with_one_event_each():
    state = route(OSG.start(4), []).state
    for replica in (0, 1):
        state = OSG.learn(state, report(replica, {1: 1.0, 5: 5.0}))
    first = route(state, [5])
    assert first.state.phase is Phase.SEND_ALL
    assert [(r.position, r.replica, r.estimate) for r in first.requests] == [(0, 0, 5.0)]
    second = route(first.state, [1, 1, 1])
    assert second.state.phase is Phase.WAIT_ALL
    assert [(r.position, r.replica, r.estimate) for r in second.requests] == [(0, 1, 1.0)]
    assert second.replicas.tolist() == [1, 1, 1]


def test_replies_correct_the_estimates_and_only_those_of_this_round_count():
    state = route(OSG.start(4), []).state
    for replica in (0, 1):
        state = OSG.learn(state, report(replica, {1: 1.0}))
    state = route(state, [1, 1]).state
    state = OSG.learn(state, SyncReply(0, state.round_number, 0.5))
    state = OSG.learn(state, SyncReply(1, state.round_number - 1, 99.0))
    assert state.phase is Phase.WAIT_ALL
    state = OSG.learn(state, SyncReply(1, state.round_number, -0.25))
    assert state.phase is Phase.RUN
    assert state.work[:2].tolist() == [1.5, 0.75]


def test_it_runs_greedily_by_estimated_work():
    routing = route(running(), [5, 1, 1, 1, 1, 1, 1])
    assert routing.replicas.tolist() == [0, 1, 1, 1, 1, 1, 0]
    assert routing.state.work[:2].tolist() == [6.0, 5.0]


def test_new_sketches_in_any_phase_but_the_first_start_a_new_round():
    state = running()
    renewed = OSG.learn(state, report(0, {1: 2.0, 5: 5.0}))
    assert renewed.phase is Phase.SEND_ALL
    assert renewed.round_number == state.round_number + 1
    assert route(renewed, [1, 1, 1]).state.work[0] == 2.0


def test_a_value_never_seen_costs_the_mean():
    state = running({1: 1.0, 2: 3.0})
    unseen = next(
        v for v in range(10, 999) if CountMin.empty(OSG.family).add([1, 2]).estimate([v]) == 0
    )
    assert route(state, [unseen]).state.work[0] == 2.0


def test_a_replica_that_joins_starts_level_and_borrows_the_others_costs():
    state = route(running(), [1] * 20).state
    assert state.work[:2].tolist() == [10.0, 10.0]
    routing = route(state, [5] * 6, active=(0, 1, 2))
    assert routing.state.phase is Phase.RUN
    assert np.bincount(routing.replicas).tolist() == [2, 2, 2]
    assert routing.state.work[2] == 10.0


def test_a_replica_that_leaves_owes_no_answer():
    state = OSG.learn(running(), report(0, {1: 1.0}))
    state = route(state, [1, 1]).state
    state = OSG.learn(state, SyncReply(0, state.round_number, 0.0))
    assert state.phase is Phase.WAIT_ALL
    assert route(state, [1], active=[0]).state.phase is Phase.RUN


def test_a_replica_reports_when_two_snapshots_agree_and_starts_again():
    replica = OsgReplica.start(3, OSG.family, window=10)
    replica, said = replica.execute([7] * 10, [0.5] * 10)
    assert replica.snapshot is not None
    assert said == ()
    replica, said = replica.execute([7] * 10, [0.5] * 10)
    assert [message.replica for message in said] == [3]
    assert said[0].frequency.sum(axis=1).tolist() == [20] * 5
    assert said[0].time.sum(axis=1).tolist() == pytest.approx([10] * 5)
    assert replica.snapshot is None
    assert not replica.frequency.table.any()
    assert replica.work == pytest.approx(10)


def test_a_replica_whose_costs_change_takes_a_new_snapshot_instead():
    replica = OsgReplica.start(0, OSG.family, window=10)
    replica, _ = replica.execute([7] * 10, [0.5] * 10)
    replica, said = replica.execute([7] * 10, [1.5] * 10)
    assert said == ()
    assert replica.snapshot.max() == pytest.approx(1.0)


def test_windows_end_inside_of_batches():
    whole, in_parts = (OsgReplica.start(0, OSG.family, window=10) for _ in range(2))
    values, seconds = np.arange(57) % 4, np.ones(57)
    whole, said = whole.execute(values, seconds)
    heard = []
    for part in np.array_split(np.arange(57), 8):
        in_parts, messages = in_parts.execute(values[part], seconds[part])
        heard += messages
    assert len(said) == len(heard) == 2
    assert in_parts.in_window == whole.in_window == 7
    assert in_parts.work == whole.work == 57


def test_a_replica_answers_with_what_it_had_really_done_by_then():
    state = OSG.learn(running(), report(0, {1: 1.0, 5: 5.0}))
    requests = route(state, [1, 1]).requests
    replica, _ = OsgReplica.start(0, OSG.family).execute([1, 1], [1.5, 1.5])
    _, said = replica.execute([1, 1], [2.0, 9.0], requests[:1])
    assert said == (SyncReply(0, requests[0].round_number, 5.0 - requests[0].estimate),)


class Queues:
    """First in, first out at every replica; one arrival every `gap` seconds."""

    def __init__(self, replicas, gap):
        self.free_at = np.zeros(replicas)
        self.now, self.gap, self.waited = 0.0, gap, []

    def take(self, chosen, seconds):
        for replica, cost in zip(chosen, seconds, strict=True):
            self.now += self.gap
            self.free_at[replica] = max(self.free_at[replica], self.now) + cost
            self.waited.append(self.free_at[replica] - self.now)


def completion_time(grouping, values, cost_of, replicas=5, load=0.95, batch=100):
    """Mean time from arrival to completion when `grouping` chooses the replica."""
    costs = cost_of[values]
    queues = Queues(replicas, gap=costs.mean() / replicas / load)
    tasks = [OsgReplica.start(i, OSG.family) for i in range(replicas)]
    state = grouping.start(replicas)
    for start in range(0, len(values), batch):
        part = slice(start, start + batch)
        routing = grouping.route(state, Batch.of(values[part]), np.arange(replicas))
        state = routing.state
        queues.take(routing.replicas, costs[part])
        for replica in range(replicas):
            mine = np.flatnonzero(routing.replicas == replica)
            asked = [r for r in routing.requests if r.replica == replica]
            asked = [
                type(r)(
                    int(np.searchsorted(mine, r.position)), r.replica, r.round_number, r.estimate
                )
                for r in asked
            ]
            tasks[replica], said = tasks[replica].execute(
                values[part][mine], costs[part][mine], asked
            )
            for message in said:
                state = grouping.learn(state, message)
    return np.mean(queues.waited)


def test_osg_beats_round_robin_on_a_zipf_stream_whose_cost_depends_on_the_value():
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        values = rng.zipf(1.5, 30_000) % 4096
        cost_of = rng.permutation(np.repeat(np.linspace(0.001, 0.064, 64), 64))
        by_work = completion_time(OSG, values, cost_of)
        ratios.append(by_work / completion_time(Shuffle(), values, cost_of))
    assert max(ratios) < 1
    assert np.mean(ratios) < 0.85


def waiting_for_both():
    """A scheduler that has asked both replicas, and had an answer from the first one."""
    state = route(OSG.learn(running(), report(0, {1: 1.0})), [1, 1]).state
    state = OSG.learn(state, SyncReply(0, state.round_number, 0.0))
    assert state.phase is Phase.WAIT_ALL
    return state


def test_whoever_has_not_answered_is_asked_again_after_a_plan_change():
    """Its request may have come to another replica with its lane, which leaves it unanswered."""
    routing = route(waiting_for_both(), [1, 1, 1], active=(0, 1, 2))
    assert [(request.replica, request.position) for request in routing.requests] == [(1, 0), (2, 1)]
    state = routing.state
    assert state.phase is Phase.WAIT_ALL
    for request in routing.requests:
        state = OSG.learn(state, SyncReply(request.replica, request.round_number, 0.0))
    assert state.phase is Phase.RUN


def test_an_answer_that_comes_after_all_is_as_good_as_the_second_one():
    before = waiting_for_both()
    routing = route(before, [1, 1], active=(1, 2))
    late = OSG.learn(routing.state, SyncReply(1, before.round_number, 0.5))
    assert late.phase is Phase.WAIT_ALL
    assert OSG.learn(late, SyncReply(2, before.round_number, 0.0)).phase is Phase.RUN
