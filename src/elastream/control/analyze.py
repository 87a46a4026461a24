"""Analyze: from statistics to what a policy needs to know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elastream.control.execution_time import ExecutionTimes
from elastream.control.forecasting import Forecasting, forecast
from elastream.control.lead_time import LeadTimes
from elastream.control.monitor import Sampled
from elastream.control.settings import Course
from elastream.core.decision import Plan
from elastream.core.demand import output_shares
from elastream.core.stats import EdgeName, IntervalStats
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError, NotReadyError
from elastream.policies.base import Context, Outlook
from elastream.predictors.base import Forecast, Predictor


def check_look_back(look_back: int) -> None:
    """Refuse a number of samples that no forecast can be made from."""
    if look_back < 2:
        raise InvalidInputError(f"look_back={look_back}: a forecast needs at least 2 samples")


class Analyzer:
    """Forecasts the input, and tracks shares, execution times and lead times."""

    def __init__(self, topology: Topology, look_back: int) -> None:
        check_look_back(look_back)
        self.lead_times = LeadTimes()
        self._topology = topology
        self._look_back = look_back
        self._execution_times = ExecutionTimes(topology)
        self._shares: dict[EdgeName, float] = {}
        self._forecasting: Forecasting | None = None

    def analyze(
        self,
        past: tuple[IntervalStats, ...],
        sampled: Sampled,
        course: Course,
        proposals: Sequence[Plan],
        now: float,
    ) -> Context:
        """Everything that the policy may know, with the forecasts that it needs."""
        stats, policy, predictor = past[-1], course.policy, course.predictor
        self._execution_times.update(stats)
        self.lead_times.look(stats, now)
        self._shares = output_shares(self._topology, stats, self._shares)
        lead_times = self.lead_times.current
        longest = max((of.longest for of in lead_times.values()), default=0.0)
        outlook, expected = self._expected(stats, sampled, course, longest)
        by_operator = {}
        if policy.operator_horizon:
            for name in self._topology.by_name:
                received = np.array([each.operators[name].received for each in past])
                by_operator[name] = forecast(
                    predictor, received, policy.operator_horizon, self._look_back
                )
        return Context(
            topology=self._topology,
            past=past,
            execution_times=self._execution_times.current,
            shares=self._shares,
            forecast=expected,
            operator_forecasts=by_operator,
            proposals=tuple(proposals),
            now=now,
            service_times=self._execution_times.service_times,
            variations=self._execution_times.variations,
            outlook=outlook,
            lead_times=lead_times,
        )

    def _expected(
        self, stats: IntervalStats, sampled: Sampled, course: Course, lead_time: float
    ) -> tuple[Outlook | None, Forecast | None]:
        """The forecast input, in sampling windows and in intervals, if the policy looks ahead."""
        horizon = course.policy.horizon_after(stats)
        if stats.executors and stats.executors.limits:
            lead_time = max(lead_time, stats.executors.lead)
        elif not horizon:
            return None, None
        try:
            outlook = self._forecasting_by(course.predictor).outlook(
                sampled, max(horizon * stats.duration, lead_time)
            )
        except NotReadyError:
            if horizon and course.policy.needs_forecast:
                raise
            return None, None
        return outlook, self._forecasting_by(course.predictor).intervals(
            outlook, stats, max(horizon, 1)
        )

    def _forecasting_by(self, predictor: Predictor) -> Forecasting:
        if self._forecasting is None or not self._forecasting.is_by(predictor):
            self._forecasting = Forecasting(predictor, self._look_back)
        self._forecasting.predictor = predictor  # Its time-out may have changed.
        return self._forecasting
