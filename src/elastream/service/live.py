"""What is known about a running pipeline, kept in memory and passed on as it comes."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from threading import Lock
from typing import Any

import orjson

from elastream.control import Cycle, Steered
from elastream.control.problems import Problems
from elastream.core.health import STARTING, Health
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.service.backlog import Backlog
from elastream.service.columns import KEPT_SECONDS, Columns
from elastream.service.decisions import (
    Entry,
    decision_message,
    health_message,
    problems_message,
    settings_message,
)
from elastream.service.feed import Feed, event
from elastream.service.forecast_state import ForecastState
from elastream.service.samples import sample_of
from elastream.service.totals import Totals

log = logging.getLogger(__name__)

KEPT_DECISIONS = 1_000
QUIET_SECONDS = 1.0


class Live:
    """Takes what an engine measures and a loop decides, from any thread, and keeps the last hour.

    Args:
        topology: The pipeline.
        now: The engine's clock.
        sample: The length of a sampling window, in seconds.
    """

    def __init__(self, topology: Topology, now: Callable[[], float], sample: float) -> None:
        self.topology = topology
        self.started = time.time()
        self.clock_zero = self.started - now()
        # Above the numbers of an earlier service, so that nobody resumes in the wrong run.
        self.feed = Feed(last=int(1_000 * self.started))
        self._totals = Totals(topology)
        self._now = now
        self._problems = Problems()
        self._backlog = Backlog(topology, now())
        self._columns = Columns(tuple(topology.by_name), sample)
        self._decisions: deque[Entry] = deque(maxlen=KEPT_DECISIONS)
        self._intervals: deque[tuple[float, IntervalStats]] = deque()
        self._forecast = ForecastState()
        self._cycles = 0
        self._told = -QUIET_SECONDS
        """When the last cycle was told."""
        self._before: Cycle | None = None
        self._health = STARTING
        self._over = False
        self._lock = Lock()

    def watch(self, stats: IntervalStats) -> None:
        """A sampling window has ended."""
        try:
            with self._lock:
                now, before = self._now(), problems_message(self._problems)
                self._totals.add(stats)
                paid = self._totals.executor_seconds
                sample = sample_of(self.topology, stats, now, self._forecast.expected, paid)
                self._forecast.look(stats)
                self._columns.add(sample)
                self._backlog.add(stats, now)
                self._problems.take(stats)
                self.feed.publish("sample", {**sample, "backlog": self._backlog.newest})
                if (problems := problems_message(self._problems)) != before:
                    self.feed.publish("problems", problems)
        except Exception:  # Whatever is wrong with what people see, the pipeline must continue.
            log.exception("a sampling window could not be shown")

    def record(self, entry: Cycle | Steered) -> None:
        """The loop has decided, or a person has changed something."""
        with self._lock:
            self._totals.count(entry)
            if isinstance(entry, Cycle):
                self._cycles += 1
                self._take_cycle(entry)
                quiet = entry.is_quiet_after(self._before)
                self._before = entry
                # Of cycles that change nothing new, one a second is enough.
                if quiet and entry.time - self._told < 0.9 * QUIET_SECONDS:
                    return
                self._told = entry.time
                if quiet:  # What it asks for again is among the decisions already.
                    entry = replace(entry, changes=())
            decision = decision_message(entry, self._cycles)
            self._decisions.appendleft(decision)
            self.feed.publish("decision", decision)
            if isinstance(entry, Steered):
                self.feed.publish("settings", settings_message(entry.settings))

    def show_health(self, health: Health) -> None:
        """Report the health of the run, if it has changed."""
        with self._lock:
            if health != self._health:
                self._health = health
                self.feed.publish("health", health_message(health))

    def end(self) -> None:
        """The run is over; a second call does nothing."""
        with self._lock:
            if not self._over:
                self._over = True
                self.feed.publish("end", {})

    def greeting(self, settings: Entry) -> bytes:
        """What a stream starts with, before anything happens."""
        with self._lock:
            parts = {
                "settings": settings,
                "forecast": self._forecast.as_message(),
                "health": health_message(self._health),
                "problems": problems_message(self._problems),
            }
            if self._over:
                parts["end"] = {}
        return b"".join(event(kind, content) for kind, content in parts.items())

    def history(self, seconds: float = KEPT_SECONDS) -> bytes:
        """The samples of the last `seconds`, in columns, as JSON."""
        with self._lock:
            columns: dict[str, Any] = self._columns.last(seconds)
            columns["backlog"] = self._backlog.newest
            columns["event"] = self.feed.last
        return orjson.dumps(columns, option=orjson.OPT_SERIALIZE_NUMPY)

    def decisions(self, limit: int) -> list[Entry]:
        """The newest `limit` of them, newest first."""
        with self._lock:
            return list(islice(self._decisions, limit))

    def forecast(self) -> dict[str, Any]:
        """The state of the forecast."""
        with self._lock:
            return self._forecast.as_message()

    def problems(self) -> Entry:
        """What has gone wrong with single events and replicas."""
        with self._lock:
            return problems_message(self._problems)

    def intervals(self) -> list[IntervalStats]:
        """The newest control intervals, of an hour at most, oldest first."""
        with self._lock:
            return [stats for _, stats in self._intervals]

    @contextmanager
    def reading(self) -> Iterator[tuple[Totals, ForecastState, Problems, Backlog]]:
        """The totals, which do not change while the block reads them."""
        with self._lock:
            yield self._totals, self._forecast, self._problems, self._backlog

    def _take_cycle(self, cycle: Cycle) -> None:
        before = self._forecast.as_message()
        self._forecast.take(cycle)
        if (now := self._forecast.as_message()) != before:
            self.feed.publish("forecast", now)
        if cycle.stats is not None:
            self._intervals.append((cycle.time, _without_replicas(cycle.stats)))
            while self._intervals[0][0] < cycle.time - KEPT_SECONDS:
                self._intervals.popleft()


def _without_replicas(stats: IntervalStats) -> IntervalStats:
    """The operators alone: an hour of short intervals is long, and a replay needs no more."""
    operators = {name: replace(of, replicas={}) for name, of in stats.operators.items()}
    return replace(stats, operators=operators)
