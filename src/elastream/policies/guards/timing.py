"""Guards that limit when replicas may change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from elastream.core.decision import Plan, Reason
from elastream.errors import InvalidInputError
from elastream.policies.base import Context, checked_fraction
from elastream.policies.guards.base import Guard, hold


@dataclass(frozen=True)
class Cooldown(Guard):
    """After a change, no replica is added for `up` seconds and none removed for `down` seconds."""

    up: float = 0.0
    down: float = 0.0

    def __post_init__(self) -> None:
        _check_seconds(up=self.up, down=self.down)

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Leave operators alone that have changed too recently."""
        amendments = {}
        for change in plan.changes(context.active):
            wait = self.up if change.added > 0 else self.down
            unchanged = _seconds_unchanged(context, change.operator)
            if unchanged < wait:
                text = f"changed {unchanged:g} s ago, and {wait:g} s must pass"
                reason = Reason("cooldown", {"seconds": unchanged, "cooldown": wait}, text)
                amendments[change.operator] = change.before, reason
        return plan.amended(amendments)


@dataclass(frozen=True)
class ScaleDownWindow(Guard):
    """Replicas are removed only if no plan of the last `seconds` needed them."""

    seconds: float

    def __post_init__(self) -> None:
        _check_seconds(seconds=self.seconds)

    def allow(self, plan: Plan, context: Context) -> Plan:
        """At least the most that was proposed in the window, unless fewer are active."""
        # A real interval lasts a little longer than it should: it counts all the same.
        intervals = round(self.seconds / context.td)
        return _with_what_was_needed(plan, context, intervals, self.seconds)


@dataclass(frozen=True)
class LeadTimeWindow(Guard):
    """Replicas are removed only if no plan needed them for as long as others would take to come.

    That is what their return would cost. One interval at least.
    """

    def allow(self, plan: Plan, context: Context) -> Plan:
        """At least the most that was proposed within the longest lead time."""
        seconds = max([context.td, *(of.lead for of in context.stats.batches)])
        return _with_what_was_needed(plan, context, int(seconds // context.td), seconds)


def _with_what_was_needed(plan: Plan, context: Context, intervals: int, seconds: float) -> Plan:
    recent = context.proposals[-intervals:] if intervals else ()
    amendments = {}
    for change in plan.changes(context.active):
        most = max([change.after, *(proposal.replicas[change.operator] for proposal in recent)])
        kept = min(most, change.before)
        if change.added < 0 and kept > change.after:
            text = f"{most} were needed in the last {round(seconds, 1):g} s"
            reason = Reason("scale-down window", {"needed": most}, text)
            amendments[change.operator] = kept, reason
    return plan.amended(amendments)


@dataclass(frozen=True)
class ExcludedPeriods(Guard):
    """No change in these periods of the day, such as 22:00 to 06:00."""

    periods: Sequence[tuple[time, time]]
    started: datetime
    """When the engine's clock stood at 0."""

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Leave everything as it is while a period lasts."""
        clock = (self.started + timedelta(seconds=context.now)).time()
        for start, end in self.periods:
            # A period that ends before it starts spans midnight.
            within = start <= clock < end if start <= end else clock >= start or clock < end
            if within:
                text = f"no changes from {start:%H:%M} to {end:%H:%M}"
                return hold(plan, context, plan.replicas, Reason("excluded period", {}, text))
        return plan


@dataclass(frozen=True)
class Pause(Guard):
    """No change at all."""

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Leave everything as it is."""
        return hold(plan, context, plan.replicas, Reason("paused", {}, "paused"))


@dataclass(frozen=True)
class TrustedBatches(Guard):
    """No change before the batch model is trusted, except to grow when a batch is late."""

    least: float = 0.5
    """The share of recent batches that the model must have predicted."""

    def __post_init__(self) -> None:
        checked_fraction("least", self.least)

    def allow(self, plan: Plan, context: Context) -> Plan:
        """Leave operators as they are if their batches cannot be predicted."""
        for change in plan.changes(context.active):
            batches = context.stats.operators[change.operator].batches
            if batches is None or (batches.model and batches.model.trust >= self.least):
                continue
            if change.added > 0 and batches.seconds > batches.every:
                continue
            trust = batches.model.trust if batches.model else 0.0
            text = f"{trust:.0%} of the recent batches predicted, {self.least:.0%} are needed"
            reason = Reason("trust", {"trust": trust, "needed": self.least}, text)
            plan = hold(plan, context, [change.operator], reason)
        return plan


def _seconds_unchanged(context: Context, operator: str) -> float:
    """How long the operator has had these replicas; infinite if since the start."""
    seconds = 0.0
    for stats in reversed(context.past):
        if stats.operators[operator].planned != context.active[operator]:
            return seconds
        seconds += stats.duration
    return math.inf


def _check_seconds(**values: float) -> None:
    for name, seconds in values.items():
        if not 0 <= seconds < math.inf:
            raise InvalidInputError(f"{name}={seconds} must be a number of seconds, 0 or more")
