"""Replicas that are not equally fast, and producers that know only what they are told."""

import numpy as np
import pytest

from elastream import Pipeline
from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.core.decision import Plan
from elastream.core.service_times import Fixed
from elastream.engines.simulation import SimulationSettings
from elastream.engines.simulation.spark_costs import as_on_spark
from elastream.errors import InvalidInputError
from engines.simulation.support import constant, engine, line, watch

SECONDS = 0.002


def last_of(grouping, rate, speeds=(1.0, 1.0, 1 / 3, 1.0), producers=4):
    """The last of four intervals of 10 s, of an operator behind another one."""
    pipeline = Pipeline("two")
    pipeline.add(
        len,
        name="first",
        after=pipeline.source("in"),
        pool=producers,
        minimum=producers,
        execution_time=1e-4,
    )
    pipeline.add(len, name="second", after="first", pool=4, minimum=4, grouping=grouping)
    behaviour = Behaviour(
        {
            "first": OperatorBehaviour(Fixed(1e-4)),
            "second": OperatorBehaviour(Fixed(SECONDS), speeds=speeds),
        }
    )
    return watch(engine(pipeline.topology(), constant(rate, 40), behaviour), 10, 20, 30, 40)[-1]


def test_a_slow_replica_falls_behind_unless_somebody_looks():
    blind, aware = last_of("shuffle", 1000), last_of("load-aware", 1000)
    assert blind.operators["second"].queued > 1_000
    assert aware.operators["second"].queued < 50
    assert aware.latency.p99 < 0.5 * blind.latency.p99
    slow, quick = (aware.operators["second"].replicas[number] for number in (2, 0))
    assert slow.processed < quick.processed / 3 + 100
    assert slow.busy / slow.processed == pytest.approx(3 * SECONDS)


def test_on_equal_replicas_all_that_look_do_as_well():
    means = {name: last_of(name, 1700, ()).latency.mean for name in ("shuffle", "load-aware")}
    assert means["load-aware"] == pytest.approx(means["shuffle"], rel=0.1)


def test_the_printed_algorithm_herds_when_replicas_are_unlike():
    nearly = (1.0, 0.98, 1.02, 1.0)
    herd, aware = (last_of(name, 1700, nearly) for name in ("algorithm-1", "load-aware"))
    assert herd.latency.p99 > 3 * aware.latency.p99


def test_replicas_that_share_a_core_slow_each_other_down():
    topology = line(0.01, 0.01, pool=2)
    alone = watch(engine(topology, constant(90, 60)), 60)[0]
    shared = watch(engine(topology, constant(90, 60), cores=1), 60)[0]
    assert alone.operators["b"].queued < 1
    # Two operators want 0.9 of a core each, and there is one.
    left = shared.operators["b"]
    assert left.processed == pytest.approx(60 * 50, rel=0.1)
    assert left.execution_time == pytest.approx(0.02, rel=0.2)
    assert sum(of.replicas[0].cpu for of in shared.operators.values()) == pytest.approx(1, rel=0.1)
    assert {
        replica.core for of in shared.operators.values() for replica in of.replicas.values()
    } == {0}


def test_with_cores_enough_nothing_is_slower():
    topology = line(0.01, 0.01, pool=2)
    running = engine(topology, constant(90, 60), cores=4)
    running.apply(Plan({"a": 2}))
    (stats,) = watch(running, 60)
    assert stats.operators["b"].execution_time == pytest.approx(0.01)
    assert [replica.core for replica in stats.operators["a"].replicas.values()] == [0, 1]


def test_what_an_engine_adds_is_added_at_every_operator():
    topology = line(0.01, 0.01)
    bare = watch(engine(topology, constant(50, 20)), 20)[0].latency.mean
    hops = watch(engine(topology, constant(50, 20), hop_delay=0.03), 20)[0].latency.mean
    units = watch(engine(topology, constant(50, 20), unit_seconds=0.05), 20)[0].latency.mean
    assert hops - bare == pytest.approx(0.06, rel=0.05)
    assert units - bare == pytest.approx(0.08, rel=0.05)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidInputError, match="speeds"):
        OperatorBehaviour(Fixed(1.0), speeds=(1.0, 0.0))
    with pytest.raises(InvalidInputError, match="cores=0"):
        engine(line(0.1), constant(1, 2), cores=0)
    assert np.array_equal(OperatorBehaviour(Fixed(1.0), speeds=(0.5,)).speeds_of(3), [0.5, 1, 1])


def test_what_a_unit_costs_besides_the_function_lowers_capacity_and_is_no_work():
    overhead = {"unit_seconds": 0.05, "unit_overhead": 0.005}
    for grouping, speeds in (("shuffle", ()), ("load-aware", (1.0, 0.9))):
        pipeline = Pipeline("one")
        after = pipeline.source("in")
        pipeline.add(len, name="a", after=after, pool=2, minimum=2, grouping=grouping)
        behaviour = Behaviour({"a": OperatorBehaviour(Fixed(0.01), speeds=speeds)})
        free, costly = (
            watch(engine(pipeline.topology(), constant(500, 20), behaviour, **more), 20)[0]
            for more in ({}, overhead)
        )
        free, costly = free.operators["a"], costly.operators["a"]
        assert costly.processed == pytest.approx(free.processed / 1.1, rel=0.02)
        assert costly.execution_time == pytest.approx(free.execution_time, rel=0.02)


def test_units_are_as_long_whatever_an_event_takes():
    settings = as_on_spark(SimulationSettings())
    assert [settings.unit(each) for each in (1e-9, 20e-6, 1e-3, 1.0)] == [10_000, 1000, 20, 1]
    slow, quick = settings.in_function(1e-3), settings.in_function(20e-6)
    assert quick == pytest.approx(slow), "the same part of the time goes into units"


def backlog_after_growth(grouping, own_queues=True):
    """A backlog of two replicas, to which two are added: what waits for each 4 s later."""
    pipeline = Pipeline("one")
    after = pipeline.source("in")
    pipeline.add(
        len, name="a", after=after, pool=4, minimum=2, grouping=grouping, execution_time=0.01
    )
    running = engine(pipeline.topology(), constant(300, 30), own_queues=own_queues)
    watch(running, 10)
    running.apply(Plan({"a": 4}))
    found = watch(running, 14)[-1].operators["a"]
    return [found.replicas[number].queued for number in range(4)]


def test_alike_replicas_have_their_own_queues_if_told_so():
    together = backlog_after_growth("load-aware", own_queues=False)
    assert max(together) == pytest.approx(min(together))
    shuffled = backlog_after_growth("shuffle")
    assert min(shuffled[:2]) > 300, "the backlog stays with those that had it"
    assert shuffled[2:] == [0, 0]
    leveled = backlog_after_growth("load-aware")
    assert max(leveled[:2]) < 0.8 * min(shuffled[:2]), "the new replicas get what comes"


def test_queues_of_their_own_make_no_difference_while_nothing_waits():
    topology = line(0.01, 0.02, pool=4, minimum=4)
    both = [
        watch(engine(topology, constant(150, 20), own_queues=own), 20)[0] for own in (False, True)
    ]
    shared, own = (stats.operators["b"] for stats in both)
    assert own.processed == shared.processed == 3000
    assert own.busy == pytest.approx(shared.busy)
    assert both[0].latency.mean == pytest.approx(both[1].latency.mean)
    assert [of.processed for of in own.replicas.values()] == pytest.approx([750] * 4)
