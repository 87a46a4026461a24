"""The health of a run: a state and a reason; and how often it may fail before it gives up.

```
starting   nothing has been measured yet
running    all is well
degraded   it works, but something needs attention
waiting    it cannot work until something else changes, such as disk space; then it continues
failed     it cannot continue
```
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from elastream.errors import InvalidInputError


class State(StrEnum):
    """In order: each is worse than the one before."""

    RUNNING = "running"
    STARTING = "starting"
    DEGRADED = "degraded"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a run, and why it is not simply running.

    Examples:
        >>> str(Health(State.WAITING, "the disk is full"))
        'waiting: the disk is full'
    """

    state: State = State.RUNNING
    why: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", State(self.state))
        if self.state not in (State.RUNNING, State.STARTING) and not self.why:
            raise InvalidInputError(f"the state {self.state.value!r} needs a reason")

    def __str__(self) -> str:
        return f"{self.state.value}: {self.why}" if self.why else self.state.value

    @property
    def live(self) -> bool:
        """Whether the process should be left alone; one that has failed should be replaced."""
        return self.state is not State.FAILED

    @property
    def ready(self) -> bool:
        """Whether events get through."""
        return self.state in (State.RUNNING, State.DEGRADED)


RUNNING = Health()
STARTING = Health(State.STARTING)


def worst(*parts: Health) -> Health:
    """The worst of them, with the reasons of all that are equally bad.

    >>> str(worst(Health(), Health(State.DEGRADED, "a"), Health(State.DEGRADED, "b")))
    'degraded: a; b'
    """
    order = list(State)
    state = max((part.state for part in parts), key=order.index, default=State.RUNNING)
    reasons = dict.fromkeys(part.why for part in parts if part.state is state and part.why)
    return Health(state, "; ".join(reasons))


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """At most `most` restarts within `within` seconds, each after a longer pause than the last."""

    most: int = 5
    within: float = 600.0
    first_pause: float = 1.0
    longest_pause: float = 60.0


@dataclass(frozen=True, slots=True)
class Restarts:
    """Recent failures, and what follows from them. `now` is any clock that never goes back.

    >>> restarts = Restarts(RestartPolicy(most=1)).failed(0.0, "the query ended")
    >>> str(restarts.health), restarts.due
    ('degraded: the query ended; restart 1 of 1', 1.0)
    >>> str(restarts.failed(5.0, "the query ended").health)
    'failed: the query ended; it has failed 2 times within 600 s'
    """

    policy: RestartPolicy = RestartPolicy()
    failures: tuple[float, ...] = ()
    """The times of recent failures."""
    cause: str = ""
    """Why it does not work now; nothing when it does."""

    def failed(self, now: float, cause: str) -> Restarts:
        """It has failed once more."""
        recent = tuple(time for time in self.failures if now - time < self.policy.within)
        return replace(self, failures=(*recent, now), cause=cause)

    def recovered(self) -> Restarts:
        """It works again. Recent failures still count."""
        return replace(self, cause="")

    @property
    def exhausted(self) -> bool:
        """Whether it must not be restarted any more."""
        return bool(self.cause) and len(self.failures) > self.policy.most

    @property
    def due(self) -> float:
        """When the next restart may begin; the pause doubles with every failure that counts."""
        if not self.failures:
            return 0.0
        doubled = self.policy.first_pause * math.pow(2, min(len(self.failures) - 1, 30))
        pause = min(doubled, self.policy.longest_pause)
        return self.failures[-1] + pause

    @property
    def health(self) -> Health:
        """Running, degraded while it is restarted, or failed with the last cause."""
        count = len(self.failures)
        if self.exhausted:
            why = f"{self.cause}; it has failed {count} times within {self.policy.within:g} s"
            return Health(State.FAILED, why)
        if self.cause:
            return Health(State.DEGRADED, f"{self.cause}; restart {count} of {self.policy.most}")
        return RUNNING
