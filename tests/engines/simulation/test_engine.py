import numpy as np
import pytest
from tests.engines.simulation.support import constant, engine, line, one, trace, watch

from elastream import Pipeline
from elastream.control import ControlLoop
from elastream.control.execution_time import ExecutionTimes
from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.decision import Plan
from elastream.core.service_times import ByValue, Exponential, Fixed, Gamma, LogNormal, zipf
from elastream.engines.simulation import Arrivals, SimulationSettings, WhenFull
from elastream.errors import InvalidInputError
from elastream.policies.base import Policy
from elastream.predictors.basic import Basic


def test_an_unhurried_pipeline_takes_as_long_as_its_operators():
    (stats,) = watch(engine(line(0.01, 0.002), constant(50, 20)), 20)
    assert stats.operators["b"].processed == pytest.approx(1000)
    assert stats.latency.mean == pytest.approx(0.012)
    assert stats.latency.p99 == pytest.approx(0.012, rel=0.01)
    assert stats.operators["a"].execution_time == pytest.approx(0.01)
    assert stats.operators["a"].replicas[0].cpu == pytest.approx(0.5)


def test_latency_is_the_time_in_the_queue_of_an_overload():
    # 200 events/s for 10 s through 100 events/s: the last event waits 10 s, and all are done at 20.
    (stats,) = watch(engine(line(0.01), trace([200] * 10)), 21)
    assert stats.latency.count == pytest.approx(2000)
    assert stats.latency.mean == pytest.approx(5.01, rel=0.01)
    assert stats.latency.p99 == pytest.approx(9.9, rel=0.02)


def test_time_can_be_cut_into_any_intervals():
    at_once = watch(engine(line(0.01, 0.02), trace([200, 50, 0, 90] * 5)), 40)
    parts = watch(engine(line(0.01, 0.02), trace([200, 50, 0, 90] * 5)), *range(2, 41, 2))
    for name in "ab":
        whole = sum(part.operators[name].processed for part in parts)
        assert whole == pytest.approx(at_once[0].operators[name].processed)
    assert [s for part in parts for s in part.samples] == pytest.approx(list(at_once[0].samples))
    counted = sum(part.latency.count * part.latency.mean for part in parts if part.latency)
    assert counted / 1700 == pytest.approx(at_once[0].latency.mean, rel=0.03)


def test_samples_are_what_arrived_in_every_window():
    running = engine(line(0.001), trace([10, 20, 30, 40]), sample=2.0)
    first, second = watch(running, 3, 4)
    assert first.sources["in"].samples == (30.0,)
    assert second.sources["in"].samples == (70.0,)


def test_full_queues_hold_events_back_at_the_source_and_lose_none():
    topology = line(0.001, 0.02, 0.001)
    (stats,) = watch(engine(topology, constant(100, 20), queue_bound=200), 20)
    assert stats.operators["b"].queued == pytest.approx(200)
    assert stats.operators["a"].queued == pytest.approx(200)
    assert stats.operators["c"].processed == pytest.approx(1000)
    assert stats.sources["in"].queued == pytest.approx(2000 - 1000 - 400)
    assert stats.sources["in"].emitted == pytest.approx(1400)
    assert all(of.dropped == 0 for of in stats.operators.values())


def test_full_queues_can_drop():
    settings = {"queue_bound": 200, "when_full": WhenFull.DROP}
    (stats,) = watch(engine(line(0.001, 0.02), constant(100, 20), **settings), 20)
    assert stats.operators["b"].queued == pytest.approx(200)
    assert stats.operators["b"].dropped == pytest.approx(2000 - 1000 - 200)
    assert stats.sources["in"].queued == 0
    assert stats.latency.p99 <= 4.1


def test_events_that_wait_too_long_are_dropped():
    (stats,) = watch(engine(line(0.01), constant(200, 60), time_out=5.0), 60)
    operator = stats.operators["a"]
    assert operator.processed == pytest.approx(6000)
    assert operator.queued == pytest.approx(5.0 * 200, rel=0.1)
    assert operator.dropped == pytest.approx(12_000 - 6000 - operator.queued)
    assert stats.latency.p99 <= 5.3


def test_activated_replicas_work_after_their_delay():
    running = engine(line(0.01), constant(200, 20), activation_delay=4.0)
    running.apply(Plan({"a": 2}))
    (stats,) = watch(running, 10)
    assert stats.operators["a"].active == 2
    assert stats.operators["a"].processed == pytest.approx(4 * 100 + 6 * 200)


def test_a_change_can_cost_a_restart_in_which_all_that_waits_or_comes_is_lost():
    running = engine(line(0.01), constant(200, 40), restart_downtime=3.0)
    watch(running, 10)
    running.apply(Plan({"a": 4}))
    (stats,) = watch(running, 20)
    assert stats.operators["a"].dropped == pytest.approx(1000 + 3 * 200)
    assert stats.operators["a"].processed == pytest.approx(7 * 200)
    running.apply(Plan({"a": 4}))
    (calm,) = watch(running, 30)
    assert calm.operators["a"].dropped == 0


def test_branches_mix_their_latencies():
    pipeline = Pipeline("fork")
    source = pipeline.source("in")
    for name, share in (("quick", 0.75), ("slow", 0.25)):
        pipeline.add(len, name=name, after=source, share=share, execution_time=0.001)
    behaviour = Behaviour({"slow": OperatorBehaviour(Fixed(0.1))})
    running = engine(pipeline.topology(), constant(20, 200), behaviour)
    (stats,) = watch(running, 200)
    assert stats.edges["in", "slow"] == pytest.approx(1000)
    assert stats.latency.mean == pytest.approx(0.75 * 0.001 + 0.25 * 0.1, rel=0.1)
    assert stats.latency.p50 == pytest.approx(0.001, rel=0.02)
    assert stats.latency.p95 == pytest.approx(0.1, rel=0.02)


def test_a_condition_needs_a_share_and_uses_it():
    pipeline = Pipeline("filter")
    source = pipeline.source("in")
    pipeline.add(len, name="a", after=source, when=bool, execution_time=0.001)
    with pytest.raises(InvalidInputError, match="in -> a: it is unknown how often"):
        engine(pipeline.topology(), constant(1, 2))
    behaviour = Behaviour(splits={("in", "a"): 0.3})
    (stats,) = watch(engine(pipeline.topology(), constant(100, 10), behaviour), 10)
    assert stats.operators["a"].received == pytest.approx(300)


@pytest.mark.parametrize("service", [Exponential(0.01), Gamma(0.01), LogNormal(0.01, 2.0)])
def test_random_times_process_as_much_on_average_and_repeat_under_a_seed(service):
    topology, behaviour = one(service, pool=4, minimum=4)
    settings = {"arrivals": Arrivals.POISSON, "seed": 3}
    (stats,) = watch(engine(topology, constant(380, 200), behaviour, **settings), 200)
    (again,) = watch(engine(topology, constant(380, 200), behaviour, **settings), 200)
    assert stats == again
    assert stats.operators["a"].processed == pytest.approx(76_000, rel=0.02)
    assert stats.latency.mean > 0.01


@pytest.mark.parametrize("service", [Fixed(0.01), Exponential(0.01), LogNormal(0.01, 2.0)])
def test_how_much_times_vary_can_be_seen(service):
    topology, behaviour = one(service, pool=4, minimum=4)
    (stats,) = watch(engine(topology, constant(100, 20), behaviour), 20)
    times = ExecutionTimes(topology)
    times.update(stats)
    assert times.variations["a"] == pytest.approx(service.variation, rel=0.01, abs=1e-6)


@pytest.mark.parametrize("low", ["load-aware", "osg"])
def test_a_blind_grouping_is_less_balanced_than_one_that_looks(low):
    times = ByValue(tuple(np.linspace(0.001, 0.064, 64).tolist()), zipf(64, 0.0))

    def imbalance(grouping):
        key = {"key": "value"} if grouping in ("osg", "key") else {}
        topology, behaviour = one(times, pool=4, minimum=4, grouping=grouping, **key)
        running = engine(topology, constant(120, 120), behaviour, step=0.5)
        busy = []
        for stats in watch(running, *range(5, 121, 5)):
            of = stats.operators["a"]
            busy.append([part.queued for part in of.replicas.values()])
        return float(np.mean(np.std(busy, axis=1)))

    if low == "osg":
        assert imbalance("osg") < imbalance("shuffle")
    assert imbalance(low) < imbalance("key")


def test_a_deactivated_replica_works_off_its_queue():
    times = ByValue((0.01,), (1.0,))
    topology, behaviour = one(times, pool=2, minimum=1)
    running = engine(topology, trace([300] * 5), behaviour, initial={"a": 2})
    (before,) = watch(running, 5)
    running.apply(Plan({"a": 1}))
    (after,) = watch(running, 10)
    assert before.operators["a"].queued == pytest.approx(500)
    assert after.operators["a"].processed == pytest.approx(500)
    assert set(after.operators["a"].replicas) == {0, 1}


def test_what_cannot_be_simulated_is_refused_with_a_remedy():
    pipeline = Pipeline("bare")
    pipeline.add(len, name="a", after=pipeline.source("in"))
    with pytest.raises(InvalidInputError, match=r"execution time of the operator 'a' is unknown"):
        engine(pipeline.topology(), constant(1, 2))
    with pytest.raises(InvalidInputError, match="has the sources in, and there are traces for out"):
        engine(line(0.1), {"out": constant(1, 2)})
    with pytest.raises(InvalidInputError, match="step=0: it must be above 0"):
        engine(line(0.1), constant(1, 2), step=0)
    with pytest.raises(InvalidInputError, match="9 replicas of 'a': its pool allows 1 to 8"):
        engine(line(0.1), constant(1, 2)).apply(Plan({"a": 9}))
    with pytest.raises(InvalidInputError, match="no operator 'z' to scale"):
        engine(line(0.1), constant(1, 2)).apply(Plan({"z": 1}))


def test_beyond_a_level_replicas_take_longer_and_those_on_their_way_stay_so():
    running = engine(line(0.01), constant(200, 40), activation_delay=1.0, levels=((2, 10.0),))

    def active_after(seconds):
        running.clock.sleep_until(seconds)
        return running.observe().operators["a"].active

    active_after(1)
    running.apply(Plan({"a": 3}))
    assert active_after(1.5) == 1
    assert active_after(3) == 2
    running.apply(Plan({"a": 4}))
    assert active_after(11.5) == 3
    assert active_after(14) == 4


def test_levels_are_given_in_order():
    with pytest.raises(InvalidInputError, match="the fewest replicas first"):
        SimulationSettings(levels=((4, 1.0), (2, 9.0)))


def test_replicas_on_their_way_are_pending_until_they_come_or_are_not_wanted_any_more():
    running = engine(line(0.01), constant(50, 40), activation_delay=10.0)

    def seen(at):
        running.clock.sleep_until(at)
        of = running.observe().operators["a"]
        return of.active, of.pending, of.planned

    assert seen(1) == (1, 0, 1)
    running.apply(Plan({"a": 3}))
    assert seen(2) == (1, 2, 3)
    running.apply(Plan({"a": 2}))
    assert seen(3) == (1, 1, 2)
    running.apply(Plan({"a": 1}))
    assert seen(20) == (1, 0, 1)
    running.apply(Plan({"a": 3}))
    assert seen(32) == (3, 0, 3)


class Once(Policy):
    """Wants three replicas once, and then one."""

    name, paper, td, needs_forecast = "once", "", 1.0, False

    def decide(self, context):
        return Plan({"a": 3 if len(context.past) == 1 else 1})


def test_a_request_that_is_withdrawn_is_one_change_and_its_replicas_never_come():
    running = engine(line(0.01), constant(50, 40), activation_delay=10.0)
    cycles = list(ControlLoop(running, Once(), Basic()).run(20))
    changes = [(each.before, each.after) for cycle in cycles for each in cycle.changes]
    assert changes == [(1, 3), (3, 1)]
    assert {cycle.stats.operators["a"].active for cycle in cycles} == {1}
