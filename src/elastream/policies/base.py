"""The contract of every policy: `decide(context) -> Plan`, a function of what is known.

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
from elastream.core.stats import EdgeName, IntervalStats
from elastream.core.topology import Topology
from elastream.errors import InvalidInputError
from elastream.predictors.base import Forecast


@dataclass(frozen=True, slots=True)
class Outlook:
    """The input ahead in sampling windows, which need not end with an interval."""

    forecast: Forecast
    """In events per window."""
    window: float
    """The length of a window, in seconds."""
    open: float = 0.0
    """For how long the first one has been open, in seconds."""

    def highest_rate(self, level: float, seconds: float) -> float:
        """The highest rate within the next seconds that is not exceeded with this chance.

        Without a quantile for that level it is the forecast itself. In events per second.
        """
        last = max(math.ceil((self.open + seconds) / self.window - 1e-6), 1)
        values = self.forecast.quantiles.get(level, self.forecast.values)
        return float(values[:last].max()) / self.window


@dataclass(frozen=True)
class Context:
    """All that a policy may know when it decides on the next interval."""

    topology: Topology
    past: tuple[IntervalStats, ...]
    """The intervals so far, oldest first; the last has just ended."""
    execution_times: Mapping[str, float]
    """et_i of the operators of which it is known, in seconds per event."""
    shares: Mapping[EdgeName, float]
    """θ_i^p of every edge."""
    forecast: Forecast | None = None
    """Of the whole input, in events per interval; None for a policy that wants none."""
    operator_forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    """Of what each operator receives, in events per interval, for a policy that wants them."""
    proposals: tuple[Plan, ...] = ()
    """What the policy proposed before, oldest first, whatever became of it."""
    now: float = 0.0
    """The engine's clock, in seconds since it started."""
    service_times: Mapping[str, float] = field(default_factory=dict)
    """What an event costs a busy replica, with taking and committing it, in seconds."""
    outlook: Outlook | None = None
    """The input ahead in sampling windows, with quantiles; None for a policy without a horizon."""
    lead_times: Mapping[str, float] = field(default_factory=dict)
    """How long a replica takes to come, in seconds; 0 within an interval, and while unknown."""

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
        """Active replicas per operator, as observed."""
        return {name: self.stats.operators[name].active for name in self.topology.by_name}

    @property
    def expected_input(self) -> float:
        """λ̂_G(t+1): what all sources are expected to send in the next interval, in events."""
        if self.forecast is None:
            raise InvalidInputError("this policy needs a forecast, and the context has none")
        return float(self.forecast.values[0])


@dataclass(frozen=True)
class Policy(ABC):
    """Decides how many replicas every operator gets."""

    name: ClassVar[str]
    paper: ClassVar[str]
    td: ClassVar[float] = 30.0
    """The length of an interval that it is made for, in seconds; 30 as in PA-SPS."""
    needs_forecast: ClassVar[bool] = True
    """Whether one that looks ahead can decide nothing without a forecast."""

    @property
    def horizon(self) -> int:
        """How many intervals ahead it wants the input forecast; 0 for none."""
        return 0

    def horizon_after(self, stats: IntervalStats) -> int:
        """The same after an interval that may tell how long replicas take to come."""
        return self.horizon

    @property
    def operator_horizon(self) -> int:
        """How many intervals ahead it wants every operator's own input forecast; 0 for none."""
        return 0

    def before(
        self,
        topology: Topology,
        shares: Mapping[EdgeName, float],
        execution_times: Mapping[str, float],
        td: float,
    ) -> Mapping[str, int]:
        """Replicas of the first interval, before anything was measured; none it leaves open."""
        return {}

    @abstractmethod
    def decide(self, context: Context) -> Plan:
        """The active replicas of every operator in the next interval, each with its reason."""


def clipped(context: Context, operator: str, replicas: float) -> int:
    """The nearest number of replicas that the operator's minimum and pool allow."""
    limits = context.topology.by_name[operator]
    return int(min(max(replicas, limits.minimum), limits.pool))


def unknown_cost() -> Reason:
    """Why an operator whose execution time nobody knows keeps what it has."""
    return Reason("unknown execution time", {}, "nothing processed yet, so its cost is unknown")


def checked_fraction(name: str, value: float) -> None:
    """Refuse a parameter that is not in (0, 1]."""
    if not 0 < value <= 1:
        raise InvalidInputError(f"{name}={value} must be above 0 and at most 1")


def checked_count(name: str, value: int, least: int = 1) -> None:
    """Refuse a parameter that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInputError(f"{name}={value} must be a whole number of {least} or more")
