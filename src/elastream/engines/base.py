"""What the control loop asks of an engine: three calls, and a clock to wait by."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from elastream.core.decision import Plan
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology


class Clock(Protocol):
    """Time as an engine lives it, in seconds since it started."""

    def now(self) -> float:
        """The time."""

    def sleep_until(self, time: float) -> None:
        """Come back at that time; at once if it is past."""


@runtime_checkable
class Engine(Protocol):
    """Runs a topology. What it measures is what happened, whatever was planned."""

    @property
    def topology(self) -> Topology:
        """The pipeline that it runs."""

    @property
    def clock(self) -> Clock:
        """The time that it runs in."""

    def observe(self) -> IntervalStats:
        """The statistics of the time since the last call, or since the start."""

    def apply(self, plan: Plan) -> None:
        """Activate and deactivate replicas; returns without waiting for them."""

    def close(self) -> None:
        """Stop, and free what is held; a second call does nothing."""
