"""The contract of every policy: `decide(context) -> Plan`, a pure function.

A policy is an immutable value whose fields are its parameters, with the papers' values as defaults.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from elastream.core.decision import Plan, Reason
from elastream.core.demand import (
    SHARE_SECONDS,
    Demand,
    demands,
    recent_shares,
    recent_source_shares,
)
from elastream.core.lead_time import LeadTime
from elastream.core.stats import EdgeName, IntervalStats
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError
from elastream.predictors.base import Forecast

REMEMBERED_INTERVALS = 500
"""How many intervals a policy may look back, at least as far as `REMEMBERED_SECONDS`."""
REMEMBERED_SECONDS = 60.0
"""How far a policy may always look back, however short intervals are."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The forecast input in sampling windows, which need not be aligned with intervals."""

    forecast: Forecast
    """In events per window."""
    window: float
    """The length of a window, in seconds."""
    open: float = 0.0
    """How long the first one has been open, in seconds."""

    def highest_rate(self, level: float, seconds: float) -> float:
        """The highest rate within the next seconds that is not exceeded with this chance.

        Without a quantile for that level it is the forecast itself. In events per second.
        """
        last = max(math.ceil((self.open + seconds) / self.window - 1e-6), 1)
        values = self.forecast.quantiles.get(level, self.forecast.values)
        return float(values[:last].max()) / self.window


@dataclass(frozen=True)
class Context:
    """Everything that a policy may know when it decides about the next interval."""

    topology: Topology
    past: tuple[IntervalStats, ...]
    """The intervals so far, oldest first; the last has just ended."""
    execution_times: Mapping[str, float]
    """et_i of the operators for which it is known, in seconds per event."""
    shares: Mapping[EdgeName, float]
    """θ_i^p of every edge."""
    forecast: Forecast | None = None
    """Of the whole input, in events per interval; None for a policy that needs none."""
    operator_forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    """Of the input of each operator, in events per interval, for a policy that needs them."""
    proposals: tuple[Plan, ...] = ()
    """The policy's earlier proposals, oldest first, whether applied or not."""
    now: float = 0.0
    """The engine's clock, in seconds since it started."""
    service_times: Mapping[str, float] = field(default_factory=dict)
    """What an event costs a busy replica, taking and committing included, in seconds."""
    variations: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation over mean of execution times, of the operators for which it is known."""
    outlook: Outlook | None = None
    """The forecast input in sampling windows, with quantiles; None without a horizon."""
    lead_times: Mapping[str, LeadTime] = field(default_factory=dict)
    """The lead times of replicas, where known; 0 if below an interval."""

    @property
    def stats(self) -> IntervalStats:
        """The interval that has just ended."""
        return self.past[-1]

    @property
    def td(self) -> float:
        """The length of an interval, in seconds."""
        return self.stats.duration

    @cached_property
    def active(self) -> Mapping[str, int]:
        """Active replicas per operator, those included that were asked for and are to come."""
        return {name: self.stats.operators[name].planned for name in self.topology.by_name}

    @cached_property
    def costs(self) -> Mapping[str, float]:
        """What an event costs a busy replica, or its execution time where that is not known yet."""
        return {**self.execution_times, **self.service_times}

    @cached_property
    def recent_shares(self) -> Mapping[EdgeName, float]:
        """θ_i^p of every edge over the last seconds, for intervals that are too short."""
        return recent_shares(self.topology, self.past, SHARE_SECONDS, self.shares)

    @cached_property
    def recent_demand(self) -> Mapping[str, Demand]:
        """What one event of the input becomes at every operator, and what is queued on its way."""
        sources = recent_source_shares(self.past, SHARE_SECONDS)
        return demands(self.topology, self.stats, 1.0, self.recent_shares, sources=sources)

    @property
    def expected_input(self) -> float:
        """λ̂_G(t+1): the forecast of what all sources send in the next interval, in events."""
        if self.forecast is None:
            raise InvalidInputError("this policy needs a forecast, and the context has none")
        return float(self.forecast.values[0])


@dataclass(frozen=True)
class Policy(ABC):
    """Decides how many replicas every operator gets."""

    name: ClassVar[str]
    paper: ClassVar[str]
    td: ClassVar[float] = 30.0
    """Its default interval, in seconds; 30 as in PA-SPS."""
    needs_forecast: ClassVar[bool] = True
    """Whether a policy that looks ahead cannot decide without a forecast."""

    @property
    def horizon(self) -> int:
        """How many intervals of forecast input it needs; 0 for none."""
        return 0

    def horizon_after(self, stats: IntervalStats) -> int:
        """The same after an interval, which may have changed the measured lead time."""
        return self.horizon

    @property
    def operator_horizon(self) -> int:
        """How many intervals of forecast input it needs for every operator; 0 for none."""
        return 0

    def before(
        self,
        topology: Topology,
        shares: Mapping[EdgeName, float],
        execution_times: Mapping[str, float],
        td: float,
    ) -> Mapping[str, int]:
        """Replicas in the first interval, before anything was measured; others stay as they are."""
        return {}

    @abstractmethod
    def decide(self, context: Context) -> Plan:
        """The active replicas of every operator in the next interval, each with its reason."""


def clipped(context: Context, operator: str, replicas: float) -> int:
    """The nearest number of replicas that the operator's minimum and pool allow."""
    limits = context.topology.by_name[operator]
    return int(min(max(replicas, limits.minimum), limits.pool))


def unknown_cost() -> Reason:
    """The reason why an operator with an unknown execution time keeps its replicas."""
    return Reason("unknown execution time", {}, "nothing processed yet, so its cost is unknown")


def checked_fraction(name: str, value: float) -> None:
    """Refuse a parameter that is not in (0, 1]."""
    if not 0 < value <= 1:
        raise InvalidInputError(f"{name}={value} must be above 0 and at most 1")


def checked_count(name: str, value: int, least: int = 1) -> None:
    """Refuse a parameter that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInputError(f"{name}={value} must be a whole number of {least} or more")
