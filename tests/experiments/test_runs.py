import numpy as np
import pytest

from elastream.control import ControlLoop
from elastream.control.run import Result, Run
from elastream.engines.simulation import SimulationEngine
from elastream.experiments.runs import pipeline_curves
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS
from elastream.workloads import APPLICATIONS
from elastream.workloads.traces import Trace


def test_the_rates_of_an_interval_that_was_cut_short_are_those_of_its_real_length():
    application = APPLICATIONS["twitter"]()
    trace = Trace(np.arange(80.0), np.full(80, 100.0), 1.0)
    run = Run(application, trace, POLICIES["static"](), PREDICTORS["basic"](), td=30.0)
    engine = SimulationEngine(application.topology, trace, application.behaviour)
    loop = ControlLoop(engine, run.policy, run.predictor, td=run.td)
    result = Result(run, tuple(loop.run(until=80.0)))
    assert [stats.duration for stats in result.stats] == [30.0, 30.0, 20.0]
    _, throughput, _ = pipeline_curves(result)
    assert throughput.times == [30.0, 60.0, 80.0]
    assert throughput.given == pytest.approx([100.0] * 3)
    assert throughput.values == pytest.approx([100.0] * 3, rel=0.05)
