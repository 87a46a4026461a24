"""What the service says about forecasts."""

import numpy as np
import pytest

from elastream.control import ControlLoop
from elastream.engines.simulation import SimulationEngine
from elastream.policies import POLICIES
from elastream.predictors.base import Predictor
from elastream.service.forecast_state import ForecastState
from elastream.workloads.traces import evenly
from support.pipelines import line


class Failing(Predictor):
    """Counts how often it was asked."""

    name = "failing"
    asked = 0

    def _extrapolate(self, history, horizon):
        self.asked += 1
        raise RuntimeError("no memory")


@pytest.mark.parametrize("td", [0.25, 0.4, 1.0, 2.0])
def test_a_fallback_counts_once_however_many_cycles_see_it(td):
    model, state = Failing(), ForecastState()
    ramp = evenly(np.arange(100.0, 120.0))
    engine = SimulationEngine(line("clean", execution_time=0.01), ramp)
    for cycle in ControlLoop(engine, POLICIES["pa-sps"](), model, td=td).run(until=20.0):
        state.take(cycle)
    assert state.fallbacks == model.asked > 8
    assert state.as_message()["last_fallback"] == "failing failed: no memory"
