"""What the control loop needs from an engine: three calls, and a clock to wait by.

To see more than the loop does, as the page does, watch the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import StrEnum
from typing import Protocol, TypeVar, runtime_checkable

from elastream.core.decision import Plan
from elastream.core.health import RUNNING, Health, State
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.errors import UnknownNameError, described

Choice = TypeVar("Choice", bound=StrEnum)

Watcher = Callable[[IntervalStats], None]
"""Takes the statistics of a sampling window. It must be quick; any thread may call it."""


def report_to(watchers: Sequence[Watcher], stats: IntervalStats) -> None:
    """Report a sampling window to every watcher, whichever of them fails.

    Raises:
        Exception: What a watcher raised; the others have seen the window all the same.
    """
    with ExitStack() as every:
        for watcher in reversed(watchers):
            every.callback(watcher, stats)


class WhenFull(StrEnum):
    """What happens to an event whose queue is full."""

    BLOCK = "block"
    """It waits upstream, in the end at its source; nothing is lost."""
    DROP = "drop"
    """It is lost, and counted."""


def one_of(kind: type[Choice], given: Choice | str, option: str) -> Choice:
    """The choice of that name for an option."""
    try:
        return kind(given)
    except ValueError:
        raise UnknownNameError(f"choice for {option}", given, list(kind)) from None


class Clock(Protocol):
    """The time of an engine, in seconds since it started."""

    def now(self) -> float:
        """The time."""

    def sleep_until(self, time: float) -> None:
        """Return at that time, or when woken; at once if it is past."""

    def wake(self) -> None:
        """Wake whoever sleeps, or else whoever sleeps next; any thread may call it."""


@runtime_checkable
class Engine(Protocol):
    """Runs a topology. It reports what happened, whatever was planned."""

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

    def watch(self, watcher: Watcher) -> None:
        """From now on, report every sampling window to the watcher when it ends."""

    def close(self) -> None:
        """Stop, and free what is held; a second call does nothing."""


@runtime_checkable
class ReportsHealth(Protocol):
    """An engine that reports its health; one that does not counts as running."""

    def health(self) -> Health:
        """Its current health. It must be quick, and not wait for a lock; any thread may call it.

        An engine that fails should also wake its clock, so that the loop hears of it at once.
        """


def health_of(engine: Engine) -> Health:
    """The health of the engine, as far as it reports one."""
    if not isinstance(engine, ReportsHealth):
        return RUNNING
    try:
        return engine.health()
    except Exception as error:
        return Health(State.DEGRADED, f"the engine cannot say how it is: {described(error)}")
