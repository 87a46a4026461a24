"""Analyze: from what was measured to what a policy needs to know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elastream.control.execution_time import ExecutionTimes
from elastream.control.settings import Course
from elastream.core.decision import Plan
from elastream.core.demand import output_shares
from elastream.core.stats import EdgeName, IntervalStats
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError, NotReadyError
from elastream.policies.base import Context
from elastream.predictors.base import Forecast, Predictor, Samples, stand_in


class Analyzer:
    """Forecasts the input, and keeps what it learns of shares and execution times."""

    def __init__(self, topology: Topology, look_back: int) -> None:
        if look_back < 2:
            raise InvalidInputError(f"look_back={look_back}: a forecast needs at least 2 samples")
        self._topology = topology
        self._look_back = look_back
        self._execution_times = ExecutionTimes(topology)
        self._shares: dict[EdgeName, float] = {}

    def analyze(
        self,
        past: tuple[IntervalStats, ...],
        samples: NDArray[np.float64],
        course: Course,
        proposals: Sequence[Plan],
        now: float,
    ) -> Context:
        """All that the policy may know, with the forecasts that it wants."""
        stats, policy, predictor = past[-1], course.policy, course.predictor
        self._execution_times.update(stats)
        self._shares = output_shares(self._topology, stats, self._shares)
        forecast, by_operator = None, {}
        horizon = policy.horizon_after(stats)
        if horizon:
            forecast = self._input_forecast(predictor, stats, samples, horizon)
        if policy.operator_horizon:
            for name in self._topology.by_name:
                received = np.array([each.operators[name].received for each in past])
                by_operator[name] = self._predict(predictor, received, policy.operator_horizon)
        return Context(
            topology=self._topology,
            past=past,
            execution_times=self._execution_times.current,
            shares=self._shares,
            forecast=forecast,
            operator_forecasts=by_operator,
            proposals=tuple(proposals),
            now=now,
        )

    def _input_forecast(
        self, predictor: Predictor, stats: IntervalStats, samples: Samples, horizon: int
    ) -> Forecast:
        """The samples ahead, added up to intervals."""
        per_interval = len(stats.samples) or 1
        ahead = self._predict(predictor, samples, horizon * per_interval)
        events = ahead.values.reshape(horizon, per_interval).sum(axis=1)
        return Forecast(events, ahead.model, ahead.fallback)

    def _predict(self, predictor: Predictor, samples: Samples, horizon: int) -> Forecast:
        recent = samples[-self._look_back :]
        if len(recent) < 2:
            raise NotReadyError(f"a forecast needs 2 samples, and there is {len(recent)} so far")
        try:
            return predictor.predict(recent, horizon)
        except Exception as error:  # Whatever a model does, the pipeline must go on.
            return stand_in(recent, horizon, f"{predictor.name} failed: {error}")
