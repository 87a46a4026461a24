"""Runs that are played faster, or with fewer events, need the same replicas."""

from dataclasses import replace

import numpy as np
import pytest

from elastream.control.run import Run
from elastream.core.service_times import ByValue
from elastream.engines.simulation import SimulationSettings
from elastream.errors import InvalidInputError, UnknownNameError
from elastream.experiments.base import Inputs
from elastream.experiments.pace import AtPace, faster, with_grouping, with_quicker_operators
from elastream.policies.pa_sps import PaSps
from elastream.predictors.basic import Basic
from elastream.predictors.linear import Lr
from elastream.workloads.applications import twitter
from elastream.workloads.choice import chosen_trace
from elastream.workloads.sensitive import complex_sensitive
from elastream.workloads.traces import Trace


@pytest.fixture(scope="module")
def run():
    settings = SimulationSettings(sample=5.0)
    trace = chosen_trace("spiky").first(600)
    return Run(twitter(), trace, PaSps(), Lr(), look_back=12, settings=settings)


def test_a_faster_run_has_the_same_decisions_in_less_time(run):
    slow, fast = run.simulate(), faster(run, 4.0).simulate()
    assert fast.run.trace.duration == run.trace.duration / 4
    assert fast.metrics.saved_resources == pytest.approx(slow.metrics.saved_resources, abs=0.005)
    assert fast.metrics.input_error == pytest.approx(slow.metrics.input_error, rel=0.05)
    assert fast.metrics.latency_ms.mean < slow.metrics.latency_ms.mean


def test_fewer_events_that_take_longer_need_the_same(run):
    trace = Trace(run.trace.times, run.trace.values / 10, run.trace.step)
    application = with_quicker_operators(run.application, 0.1)
    few = replace(run, trace=trace, application=application).simulate()
    assert few.metrics.saved_resources == pytest.approx(
        run.simulate().metrics.saved_resources, abs=0.005
    )


def test_what_values_cost_is_scaled_too():
    slower = with_quicker_operators(complex_sensitive(), 0.5)
    time = slower.behaviour.operators["sensitive"].time
    assert isinstance(time, ByValue)
    assert time.mean == pytest.approx(0.016)
    assert slower.topology.by_name["sensitive"].execution_time == pytest.approx(0.016)


def test_a_model_sees_samples_of_the_published_size():
    seen = []

    class Curious(Basic):
        def _extrapolate(self, history, horizon):
            seen.append(history)
            return super()._extrapolate(history, horizon)

    forecast = AtPace(Curious(), 4.0).predict(np.array([250.0, 500.0]), 2)
    assert seen[0].tolist() == [1000.0, 2000.0]
    assert forecast.values.tolist() == [250.0, 500.0]


def test_any_grouping_can_be_given_to_all_operators():
    topology = with_grouping(complex_sensitive(), "key").topology
    assert {of.router.name for of in topology.operators} == {"key"}
    assert [of.key for of in topology.operators][:2] == ["id", "value"]
    assert {of.key for of in with_grouping(complex_sensitive(), "pull").topology.operators} == {
        None
    }
    with pytest.raises(UnknownNameError, match="unknown grouping 'shufle'"):
        with_grouping(twitter(), "shufle")


def test_speed_and_scale_must_be_above_0():
    with pytest.raises(InvalidInputError, match="speed 0: it must be above 0"):
        Inputs(speed=0.0)
