"""How a loop runs: what may be changed while it does, and what it may be changed to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from elastream.policies.base import Policy
from elastream.policies.guards import Bounds, ByHand, Guard, Pause
from elastream.predictors.base import Predictor


@dataclass(frozen=True, slots=True)
class Limits:
    """At least and at most so many replicas of an operator."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What people may change while a pipeline runs, as plain values."""

    policy: str
    predictor: str
    td: float
    """The length of an interval, in seconds."""
    advice_only: bool = False
    """Plans are recorded, not applied."""
    paused: bool = False
    """Nothing is changed, except by hand."""
    stopping: bool = False
    drain: bool = True
    """Whether what is inside gets through before the end."""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """Of operators that have other limits than those they were declared with."""
    by_hand: Mapping[str, int] = field(default_factory=dict)
    """Replicas that a person set, until they are released."""


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
    """What a running loop may be switched to."""

    policies: Mapping[str, Callable[[], Policy]] = field(default_factory=dict)
    predictors: Mapping[str, Callable[[float], Predictor]] = field(default_factory=dict)
    """By name, made for a length of the interval: a forecast has only part of it."""
    shortest_td: float = 0.0
    """The shortest interval that makes sense, in seconds."""


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
