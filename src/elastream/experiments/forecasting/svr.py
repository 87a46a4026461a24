"""Support vector regression on the last samples: one machine for each step of the horizon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from elastream.experiments.forecasting.task import Forecasts, Moments, Task, Values
from elastream.experiments.work import Advance
from elastream.predictors.accuracy import rmse
from elastream.predictors.fitting import fitting

C, EPSILON = 1.0, 0.02


@dataclass(frozen=True)
class SvrPerStep:
    """Lags and γ have the least RMSE on the validation part."""

    lags: tuple[int, ...] = (12, 36, 144, 288)
    widths: tuple[float, ...] = (1.0, 0.3)
    """Multiples of scikit-learn's default γ, 1 / (lags · variance)."""
    tuned_on_every: int = 4
    """For tuning, learn only from one window in this many."""

    def steps(self, task: Task) -> int:
        """One for every choice, and one for every machine."""
        return len(self.lags) * len(self.widths) + task.horizon

    def forecasts(self, task: Task, advance: Advance) -> Forecasts:
        """Learn, and forecast the test part."""
        highest = float(task.series[: task.trained].max()) or 1.0
        scaled = replace(task, series=task.series / highest)

        def validation_error(choice: tuple[int, float]) -> float:
            ends = [0, task.horizon - 1]
            every = self.tuned_on_every
            found = [_step(scaled, scaled.tuning, *choice, every, step) for step in ends]
            advance(1)
            return rmse(scaled.truth(scaled.tuning)[:, ends], np.stack(found, axis=1))

        lags, width = min(product(self.lags, self.widths), key=validation_error)
        steps = []
        for step in range(task.horizon):
            steps.append(_step(scaled, scaled.test, lags, width, 1, step))
            advance(1)
        choice = f"{lags} lags, γ {width:g} of its default"
        return Forecasts(np.stack(steps, axis=1) * highest, choice)


def _step(scaled: Task, moments: Moments, lags: int, width: float, every: int, step: int) -> Values:
    """The forecasts for one step, by a machine that learned from one window in `every`."""
    from sklearn.svm import SVR

    learned = np.arange(lags, scaled.trained - scaled.horizon + 1, every)
    examples = scaled.windows(lags, learned)
    gamma = width / (lags * (float(examples.var()) or 1.0))
    with fitting():
        machine = SVR(C=C, epsilon=EPSILON, gamma=gamma)
        machine.fit(examples, scaled.series[learned + step])
        return np.asarray(machine.predict(scaled.windows(lags, moments)))
