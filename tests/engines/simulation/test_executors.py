"""Replicas in the task slots of executors, which take time to come."""

import numpy as np
import pytest

import elastream
from elastream.core.decision import Plan
from elastream.core.pipeline import Pipeline
from elastream.engines.simulation import SimulationEngine, SimulationSettings
from elastream.engines.simulation.executors import ExecutorSettings
from elastream.errors import InvalidInputError
from elastream.workloads.traces import Trace

COSTS = {"parse": 0.05, "model": 0.1, "check": 0.075, "store": 0.025}


def unequal():
    pipeline = Pipeline("unequal")
    before = pipeline.source("in")
    for name, seconds in COSTS.items():
        pipeline.add(len, name=name, after=before, pool=8, execution_time=seconds)
        before = name
    return pipeline


def on(least, most, slots=6, lead=8.0):
    return SimulationSettings(
        executors=ExecutorSettings(slots=slots, lead=lead, limits=(least, most))
    )


def engine_of(settings, rate=10.0):
    trace = Trace(np.arange(100.0), np.full(100, rate), step=1.0)
    return SimulationEngine(unequal().topology(), trace, settings=settings)


def observed(engine, until):
    engine.clock.sleep_until(until)
    return engine.observe()


def active(stats):
    return {name: of.active for name, of in stats.operators.items()}


def test_replicas_beyond_the_slots_wait_for_an_executor_and_the_bottleneck_comes_first():
    engine = engine_of(on(1, 2))
    engine.apply(Plan({"parse": 2, "model": 4, "check": 3, "store": 1}, executors=2))
    before = observed(engine, 5.0)
    assert active(before) == {"parse": 1, "model": 2, "check": 1, "store": 1}
    assert (before.executors.present, before.executors.wanted) == (1, 2)
    after = observed(engine, 10.0)
    assert active(after) == {"parse": 2, "model": 4, "check": 3, "store": 1}
    assert after.executors.seconds == pytest.approx(3 * 1 + 2 * 2)


def test_an_executor_that_goes_takes_its_slots_at_once():
    engine = engine_of(on(1, 2, lead=0.0))
    engine.apply(Plan({"model": 6}, executors=2))
    assert active(observed(engine, 1.0))["model"] == 6
    engine.apply(Plan({"model": 6}, executors=1))
    assert active(observed(engine, 2.0))["model"] == 2


def test_one_that_is_not_wanted_any_more_does_not_come():
    engine = engine_of(on(1, 3))
    engine.apply(Plan({}, executors=3))
    observed(engine, 4.0)
    engine.apply(Plan({}, executors=1))
    assert observed(engine, 20.0).executors.present == 1


def test_both_levels_cost_less_than_the_most_executors_and_keep_the_latency():
    """Two slow waves, each up to what four executors can do."""
    up, down = np.linspace(5, 50, 60), np.linspace(50, 5, 60)
    rates = np.concatenate([np.full(60, 5.0), *[up, down, np.full(60, 5.0)] * 2])
    trace = Trace(np.arange(len(rates), dtype=float), rates, step=1.0)

    def simulated(settings, policy):
        return elastream.simulate(unequal(), trace, policy=policy, settings=settings).metrics

    fixed = simulated(on(4, 4), elastream.policy("static", replicas=5))
    both = simulated(on(1, 4), elastream.slo("350 ms"))
    assert fixed.executor_seconds == pytest.approx(4 * len(rates), rel=0.01)
    assert both.executor_seconds <= 0.7 * fixed.executor_seconds
    assert both.latency_ms.p99 <= 1.5 * fixed.latency_ms.p99
    assert both.processed_ratio > 0.999


def test_without_executors_there_are_no_executor_seconds():
    trace = Trace(np.arange(60.0), np.full(60, 5.0), step=1.0)
    assert elastream.simulate(unequal(), trace).metrics.executor_seconds is None


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(InvalidInputError, match="a minimum from 1 to the maximum"):
        on(3, 2)
    with pytest.raises(InvalidInputError, match="too few for the sources and minima"):
        engine_of(on(1, 1, slots=4))
    with pytest.raises(InvalidInputError, match="5 executors: 1 to 2 are allowed"):
        engine_of(on(1, 2)).apply(Plan({}, executors=5))
