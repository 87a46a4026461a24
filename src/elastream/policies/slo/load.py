"""The load of one operator, as `slo` sees it, and how long events take there."""

from __future__ import annotations

import math
from dataclasses import dataclass

from elastream.core.arrivals import CONSISTENT
from elastream.core.decision import Reason
from elastream.core.queueing import wait_quantile
from elastream.core.slowest_path import SlowestPaths


@dataclass(frozen=True, slots=True)
class OperatorLoad:
    """What an operator has to do, and what its replicas can."""

    operator: str
    rate: float
    share: float
    """Events that reach it per event of the whole input."""
    low: float
    high: float
    """The range in which the rate may be, given chance, in events per second."""
    usual: float
    """The rate over a longer time, in events per second."""
    reach: float
    """What full pools before it can pass on to it, in events per second."""
    slow: int
    """Replicas to have on the way or at work, because they come too late once they are missing."""
    backlog: float
    """Events that wait for it, or upstream on their way to it."""
    waiting: float
    """Events that wait for it."""
    cost: float
    """What an event costs a busy replica, in seconds."""
    drain: float
    """How soon the backlog must be gone, in seconds."""
    tolerated: float
    """How long events may wait, in seconds."""
    calm: float
    """How long events may have waited within the last minute if fewer replicas are to be enough, in
    seconds."""
    ahead: float
    """How long until the next decision takes effect, in seconds."""
    within: float
    """How long until more replicas could have made up for a shortage, in seconds."""
    quantile: float
    """Which share of the events must keep the objective."""
    burstiness: float
    """Variance over mean of how many events arrive."""
    changed: bool
    """Whether the input has changed lately, by more than chance explains."""
    variation: float
    """Standard deviation over mean of execution times."""

    def needed(self, rate: float) -> float:
        """Replicas for a rate, and for a backlog: what may not wait is gone in time.

        n·drain ≥ λ·et·drain + backlog·et - n·tolerated: how many events may wait depends on the
        replicas that will be there, not on those that let the backlog grow.
        """
        # What waits upstream comes no faster than the pools there let it.
        come = min(rate * self.drain + self.backlog, self.reach * self.drain + self.waiting)
        work = max(min(rate, self.reach), come / (self.drain + self.tolerated)) * self.cost
        return math.ceil(work * (1 - 1e-9)) if work < 1e9 else work

    def is_bearable(self, replicas: int) -> bool:
        """Whether the backlog stays within its limit until the next decision takes effect.

        A rate that is only just too high needs no answer at once: it may have passed by then.
        """
        if not replicas:
            return False
        waits = self.backlog * self.cost / replicas
        return waits + (self.low * self.cost / replicas - 1) * self.ahead <= self.tolerated

    @property
    def by_chance(self) -> int:
        """How many replicas more chance alone calls for at times, one at least.

        Where events are few and take long, a handful that happen to come together are work for
        several.
        """
        spread = math.sqrt((self.burstiness + self.variation**2) * self.usual * self.drain)
        return max(math.ceil(CONSISTENT * spread * self.cost / self.drain), 1)

    def latency(self, replicas: int, rate: float) -> float:
        """The quantile of the time that events spend there at this rate, in seconds."""
        waits = wait_quantile(
            rate,
            self.cost,
            replicas,
            self.quantile,
            self.burstiness,
            self.variation**2,
            self.within,
        )
        return self.queueing(replicas) + waits + self.cost

    def queueing(self, replicas: int) -> float:
        """How long it takes until what waits now is gone, if nothing else came, in seconds."""
        return self.waiting * self.cost / replicas

    def reason(
        self,
        before: int,
        after: int,
        fed: float,
        paths: SlowestPaths,
        at_best: SlowestPaths,
        objective: float,
        beside: float,
    ) -> Reason:
        """The reason for these replicas, in words.

        It names the latency of the slowest path through it, with what comes on top. `at_best` are
        the paths with all replicas of all pools.
        """
        kept = paths.through(self.operator) + beside
        otherwise = kept - self.latency(after, fed) + self.latency(before, fed)
        text = f"{self.rate:,.0f} events/s"
        if self.high >= 1.01 * self.rate + 1:
            text += f" (up to {self.high:,.0f})"
        text += f", {1000 * self.cost:.3g} ms each"
        if self.backlog >= 1:
            text += f", {self.backlog:,.0f} queued"
        text += "; "
        if after != before:
            text += f"{before} would keep {_told(otherwise)}, "
        text += f"{after} keep {_told(kept)} of {_told(objective)}"
        if kept > objective:
            text += f": {_told(kept - objective)} too long"
            if at_best.through(self.operator) + beside > objective:
                text += ", which more replicas would not mend"
        facts: dict[str, float | str] = {
            "rate": self.rate,
            "highest_rate": self.high,
            "queued": self.backlog,
            "service_time": self.cost,
            "latency": kept,
            "latency_before": otherwise,
            "objective": objective,
        }
        return Reason("latency objective", facts, text)


def _told(seconds: float) -> str:
    """A latency as people read it.

    >>> _told(0.62), _told(42.3)
    ('620 ms', '42 s')
    """
    return f"{1000 * seconds:,.0f} ms" if seconds < 10 else f"{seconds:,.0f} s"
