"""ARIMA fitted to the training part, its state carried on through all samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elastream.experiments.forecasting.task import Forecasts, Task, Values
from elastream.experiments.work import Advance
from elastream.predictors.accuracy import rmse
from elastream.predictors.fitting import fitting

Order = tuple[int, int, int]
ORDERS: tuple[Order, ...] = (
    (1, 1, 1),
    (2, 1, 2),
    (4, 1, 3),
    (6, 1, 1),
    (12, 1, 1),
    (12, 0, 1),
)


@dataclass(frozen=True)
class CarriedArima:
    """The order is the one with the least RMSE on the validation part.

    A daily season of 288 samples is out of reach of a seasonal ARIMA: its state would be that
    large.
    """

    orders: tuple[Order, ...] = ORDERS

    def steps(self, task: Task) -> int:
        """One fit for every order."""
        return len(self.orders)

    def forecasts(self, task: Task, advance: Advance) -> Forecasts:
        """Learn, and forecast the test part."""
        truth, found = task.truth(task.tuning), {}
        for order in self.orders:
            found[order] = _of_order(order, task)
            advance(1)
        best = min(found, key=lambda order: rmse(truth, found[order][task.tuning]))
        return Forecasts(found[best][task.test], f"order {best}")


def _of_order(order: Order, task: Task) -> Values:
    """The forecasts before each sample: Z Tʲ a_t + d, with a_t the state given the past."""
    from statsmodels.tsa.arima.model import ARIMA

    # Start values that are not stationary are only where the search begins.
    with fitting():
        fitted = ARIMA(task.series[: task.trained], order=order).fit(cov_type="none")
        carried = fitted.apply(task.series)
    space = carried.model.ssm
    state = carried.filter_results.predicted_state[:, :-1]
    steps = []
    for _ in range(task.horizon):
        # Without differences the state is about the mean, and d is the mean; else d is 0.
        steps.append(space["design"][0] @ state + space["obs_intercept"][0])
        state = space["transition"] @ state
    return np.stack(steps, axis=1)
