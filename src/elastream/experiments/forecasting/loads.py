"""A row of the table: one model, on one load after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from elastream.experiments.forecasting.task import Forecaster, Task, Values
from elastream.experiments.work import Advance, Curve, Measured
from elastream.predictors.accuracy import mae, rmse
from elastream.predictors.recurrent.split import Split
from elastream.workloads.traces import Trace

DAY = 86_400.0
PAPERS_SPLIT = Split()


@dataclass(frozen=True)
class ByLoad:
    """Errors in percent of the mean of each load, in columns `LOAD_rmse` and `LOAD_mae`."""

    forecaster: Forecaster
    loads: Mapping[str, Trace]
    days_drawn: float = 2.0

    @property
    def steps(self) -> int:
        """Those of the model, for every load."""
        return sum(self.forecaster.steps(_task(load)) for load in self.loads.values())

    def measure(self, advance: Advance) -> Measured:
        """Learn and forecast, load by load."""
        errors: dict[str, float | None] = {}
        curves = []
        for name, load in self.loads.items():
            task = _task(load)
            found = np.maximum(self.forecaster.forecasts(task, advance).values, 0.0)
            truth = task.truth(task.test)
            errors |= {f"{name}_rmse": rmse(truth, found), f"{name}_mae": mae(truth, found)}
            curves.append(self._curve(name, load.step, truth[:, -1], found[:, -1]))
        return Measured(errors, tuple(curves))

    def _curve(self, name: str, step: float, truth: Values, found: Values) -> Curve:
        """The last sample of each forecast, and what came."""
        count = min(len(truth), int(self.days_drawn * DAY / step))
        return Curve(
            f"{name} load and forecasts (% of its mean)",
            [step * (index + 1) for index in range(count)],
            found[:count].tolist(),
            given=truth[:count].tolist(),
        )


def _task(load: Trace) -> Task:
    """The paper's shares: 40 days to learn from, 10 to tune on, 10 to test with."""
    values = 100 * load.values / (float(load.values.mean()) or 1.0)
    return Task(values, *PAPERS_SPLIT.ends(len(values)))
