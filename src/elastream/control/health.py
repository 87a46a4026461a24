"""The health of a run: what its engine reports, and what its loop has seen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from elastream.control.problems import UNNAMED
from elastream.core.health import RUNNING, STARTING, Health, State, worst
from elastream.core.stats import IntervalStats
from elastream.engines.base import Engine, health_of
from elastream.errors import without_numbers

log = logging.getLogger(__name__)

PATIENCE_INTERVALS = 3
PATIENCE_SECONDS = 10.0
"""After how many seconds, and how many intervals, it is reported that nothing moves."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a loop has observed of its run."""

    measured: float | None = None
    """When the last statistics came, by the engine's clock, in seconds."""
    failures: int = 0
    """How many cycles in a row have failed."""
    cause: str = ""
    """Why the last of them did."""
    idle: Mapping[str, float] = field(default_factory=dict)
    """How many seconds operators have processed nothing while events waited for them."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """Operators that set most events aside, and the error."""

    def after(self, now: float, past: Sequence[IntervalStats], cause: str) -> Seen:
        """One more cycle is over.

        Args:
            now: The engine's clock.
            past: The intervals so far, oldest first; none if this cycle could not measure its own.
            cause: Why the cycle failed, if it did.
        """
        failures = self.failures + 1 if cause else 0
        if not past:
            return replace(self, failures=failures, cause=cause)
        idle = {name: idle_time(past, name) for name in past[-1].operators}
        return Seen(now, failures, cause, idle, failing_operators(past[-1]))

    def conditions(self, now: float, td: float) -> Iterator[Health]:
        """The health that follows, at that time and with intervals of `td` seconds."""
        patience = max(PATIENCE_INTERVALS * td, PATIENCE_SECONDS)
        if self.measured is None:
            yield STARTING
        elif now - self.measured > patience:
            why = f"nothing has been measured for {now - self.measured:,.0f} s"
            yield Health(State.DEGRADED, why)
        if self.failures:
            why = f"no decision, failed cycles in a row: {self.failures} ({self.cause})"
            yield Health(State.DEGRADED, why)
        for name, error in self.failing.items():
            yield Health(State.DEGRADED, f"{name!r} sets most events aside: {error}")
        for name, seconds in self.idle.items():
            if seconds >= patience:
                why = (
                    f"{name!r} has processed nothing for {seconds:,.0f} s while events wait for it"
                )
                yield Health(State.DEGRADED, why)


def failing_operators(stats: IntervalStats) -> dict[str, str]:
    """Operators whose set-aside events exceed half of those processed, with the usual error."""
    return {
        name: max(of.errors, key=lambda error: of.errors[error], default=UNNAMED)
        for name, of in stats.operators.items()
        if of.set_aside > of.processed / 2
    }


def idle_time(past: Sequence[IntervalStats], operator: str) -> float:
    """How many seconds it has processed nothing, up to now, although events waited for it."""
    seconds = 0.0
    for part in reversed(past):
        of = part.operators[operator]
        if of.processed > 0 or of.queued < 1:
            break
        seconds += part.duration
    return seconds


class HealthWatch:
    """Tells any thread the health of a run at any time, and logs changes.

    Args:
        engine: What runs.
        td: The length of an interval now, in seconds.
    """

    def __init__(self, engine: Engine, td: Callable[[], float]) -> None:
        self._engine = engine
        self._td = td
        self._seen = Seen()
        self._failed: Health | None = None
        self._over: Health | None = None
        self._logged = STARTING
        self._lock = Lock()

    def __call__(self) -> Health:
        """The current health; after the end of the run, the last one."""
        if self._over:
            return self._over
        now = self._failed or worst(
            health_of(self._engine),
            *self._seen.conditions(self._engine.clock.now(), self._td()),
        )
        self._log_change(now)
        return now

    @property
    def failing(self) -> bool:
        """Whether the last cycle failed."""
        return self._seen.failures > 0

    def take(self, past: Sequence[IntervalStats], cause: str) -> Health:
        """A cycle is over; see `Seen.after`."""
        self._seen = self._seen.after(self._engine.clock.now(), past, cause)
        return self()

    def fail(self, cause: str) -> None:
        """The run cannot continue."""
        self._failed = Health(State.FAILED, cause)

    def end(self) -> None:
        """The run is over."""
        self._over = self()

    def _log_change(self, now: Health) -> None:
        """Log it, unless it differs from the last one in nothing but its numbers.

        A failure ends the run with an error, which says it.
        """
        with self._lock:
            before, self._logged = self._logged, now
        if before == now or without_numbers(str(before)) == without_numbers(str(now)):
            return
        if now == RUNNING and before != STARTING:
            log.info("running again")
        elif now.state in (State.DEGRADED, State.WAITING):
            log.warning("%s", now)
