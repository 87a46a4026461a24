"""The settings of a loop: what people can change while it runs, and to what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from elastream.policies.base import Policy
from elastream.policies.guards import Bounds, ByHand, Guard, Pause
from elastream.predictors.base import Predictor


@dataclass(frozen=True, slots=True)
class Limits:
    """Minimum and maximum replicas of an operator."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a run that people can change while it runs.

    Examples:
        >>> Settings(policy="slo", predictor="auto", td=0.25).paused
        False
    """

    policy: str
    predictor: str
    td: float
    """The length of an interval, in seconds."""
    advice_only: bool = False
    """Whether plans are recorded, but not applied."""
    paused: bool = False
    """Whether no replicas change, except by hand."""
    stopping: bool = False
    """Whether somebody has asked the run to end."""
    drain: bool = True
    """Whether the events inside are finished before the end."""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """Limits by operator, where they differ from the declared ones."""
    by_hand: Mapping[str, int] = field(default_factory=dict)
    """Replicas by operator that a person has set and not released."""
    revision: int = 0
    """The number of changes so far, by which a program can tell newer settings from older ones."""


@dataclass(frozen=True, slots=True)
class Course:
    """Settings, and what their names stand for."""

    settings: Settings
    policy: Policy
    predictor: Predictor

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What the settings allow of a plan."""
        limits, by_hand = self.settings.limits, self.settings.by_hand
        bounds = Bounds(
            least={name: of.minimum for name, of in limits.items()},
            most={name: of.maximum for name, of in limits.items()},
        )
        pause = (Pause(),) if self.settings.paused else ()
        return (bounds, *pause, ByHand(by_hand))


@dataclass(frozen=True, slots=True)
class Choices:
    """What people can switch a running loop to."""

    policies: Mapping[str, Callable[[], Policy]] = field(default_factory=dict)
    predictors: Mapping[str, Callable[[float], Predictor]] = field(default_factory=dict)
    """By name, for an interval of this length: a forecast may take only part of it."""
    shortest_td: float = 0.0
    """The shortest interval that makes sense, in seconds."""
    within: Callable[[Predictor, float], Predictor] = lambda predictor, td: predictor
    """Limits a predictor to the time that an interval of this length leaves it."""

    def including(self, given: Policy | Predictor) -> Choices:
        """With an object that somebody brings along, as the choice of its name."""
        if isinstance(given, Policy):
            return replace(self, policies={**self.policies, given.name: lambda: given})
        own = {given.name: lambda td: self.within(given, td)}
        return replace(self, predictors={**self.predictors, **own})


@dataclass(frozen=True, slots=True)
class Steered:
    """A change that a person made."""

    time: float
    """The engine's clock, in seconds."""
    at: float
    """The time of day, in seconds since 1970."""
    who: str
    what: str
    settings: Settings
    """All of them, after the change."""
