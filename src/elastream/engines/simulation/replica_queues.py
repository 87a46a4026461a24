"""One queue per replica: who gets which event matters.

That is so when what an event costs depends on its value, when replicas are not equally fast, and
when some have a backlog and others, that are new, do not.
Every replica has its own backlog, in events and in seconds of work at full speed, and works off as
many seconds of work in a second as it is fast. Producers choose by what they are told: every
`report` seconds what waits for each replica, and at the end of an interval how busy it was.

The events of a backlog are taken to be alike. A replica that is deactivated gets no new events and
works off its own. An event that would wait longer than the time-out is lost when it comes: in a
queue of its own, how long it will wait is known then.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastream.core.groupings import Grouping
from elastream.core.groupings.base import ReplicaLoads
from elastream.core.service_times import ByValue, ServiceTime
from elastream.core.stats import OperatorStats, ReplicaStats
from elastream.engines.base import WhenFull
from elastream.engines.simulation.curves import Grid, ReplicaCurves
from elastream.engines.simulation.router import SampledRouter
from elastream.engines.simulation.settings import SimulationSettings

Floats = NDArray[np.float64]


class SinceReport:
    """What happened since producers were last told."""

    def __init__(self, pool: int) -> None:
        self.seconds = self.received = 0.0
        self.served, self.busy = np.zeros(pool), np.zeros(pool)


class ReplicaQueues:
    """The events that wait for each replica of one operator."""

    def __init__(
        self,
        time: ServiceTime,
        grouping: Grouping[Any],
        pool: int,
        settings: SimulationSettings,
        random: np.random.Generator,
        cores: tuple[int, ...] | None = None,
    ) -> None:
        self.waiting = 0.0
        self._pool = pool
        self._bound = settings.queue_bound
        self._blocks = settings.when_full is WhenFull.BLOCK
        self._time_out = math.inf if settings.time_out is None else settings.time_out
        self._variation = time.variation
        self._router = SampledRouter(grouping, pool, time, random)
        self._even = not grouping.needs_key and time.variation == 0
        self._mean = time.mean
        self._in_function = settings.in_function(time.mean)
        self._events = np.zeros(pool)
        self._work = np.zeros(pool)
        self._quickest = float(time.costs.min()) if isinstance(time, ByValue) else time.mean / 10
        self._cores = cores
        self._report = settings.report
        self._since = SinceReport(pool)
        self._interval = np.zeros(pool)
        self._forget()

    def begin(self, grid: Grid, active: NDArray[np.int64], speeds: Floats, producers: int) -> None:
        """Prepare for the steps of a grid."""
        self._speeds = speeds
        self._producers = producers
        self._began = self._busy.copy()
        self._times = grid.times
        self._lengths: list[float] = grid.lengths.tolist()
        self._down: list[bool] = grid.down.tolist()
        self._servers: list[int] = active.tolist()
        # The most that could be processed, if all events were of the quickest value.
        self.capacity = float(speeds.sum()) * grid.lengths / self._quickest
        self._works = [self._work]
        self._routed: list[Floats] = []
        self._admitted: list[Floats] = []

    def free(self, inflow: Floats) -> Floats | None:
        """All that comes, if replicas that are alike can take it at once; else None.

        Then there is nothing to choose by, and each gets as much as any other.
        """
        most = int(max(self._servers))
        alike = self._even and bool((self._speeds[:most] == self._speeds[0]).all())
        if not alike or any(self._down) or self.waiting > 0:
            return None
        lengths, active = np.asarray(self._lengths), np.asarray(self._servers)
        each = inflow / active * (self._mean / float(self._speeds[0]))
        if (each > self._in_function * lengths).any():
            return None
        self._found = inflow
        return inflow

    def commit(self) -> None:
        """Let happen what `free` has found; producers are told at the end."""
        inflow, active = self._found, np.asarray(self._servers)
        share = (np.arange(self._pool) < active[:, np.newaxis]) / active[:, np.newaxis]
        served = inflow @ share
        self._received += float(inflow.sum())
        self._count(served, served * self._mean)
        self._report_loads(
            float(inflow.sum()), served, served * self._mean / self._speeds, sum(self._lengths)
        )
        self._works = [self._work] * (len(inflow) + 1)
        self._routed = list(share)
        self._admitted = [np.ones(self._pool)] * len(inflow)

    def begin_steps(self) -> None:
        """All is ready for them."""

    def room(self, step: int, limit: float) -> float:
        """How many events it can take in this step; what it may process is not certain."""
        return math.inf if self._down[step] else max(self._bound - self.waiting, 0.0)

    def step(self, step: int, inflow: float, limit: float) -> float:
        """Route events, and let every replica work; returns how many were processed."""
        self._received += inflow
        if self._down[step]:
            self._lose_all(inflow)
            return 0.0
        routed, admitted = self._take(inflow, self._servers[step])
        done = np.minimum(self._work, self._in_function * self._speeds * self._lengths[step])
        share = np.divide(done, self._work, out=np.zeros(self._pool), where=self._work > 0)
        served = self._events * share
        total = float(served.sum())
        if total > limit:
            share *= limit / total
            done, served, total = self._work * share, self._events * share, limit
        self._events = self._events - served
        self._work = self._work - done
        self._count(served, done)
        self._report_loads(inflow, served, done / self._speeds, self._lengths[step])
        self.waiting = float(self._events.sum())
        if not self._blocks and self.waiting > self._bound:
            admitted = admitted * (1 - self._spill() / inflow)
        self._log(routed, admitted)
        return total

    def curves(self) -> ReplicaCurves:
        """What happened in the steps since `begin`."""
        return ReplicaCurves(
            self._times,
            # How many seconds until what waits is gone.
            np.array(self._works) / (self._in_function * self._speeds),
            np.array(self._routed),
            np.array(self._admitted),
            np.array(self._down),
        )

    def collect(self, active: int, duration: float, selectivity: float) -> OperatorStats:
        """The statistics since the last call, of the replicas that are active or did something."""
        processed, busy = float(self._processed.sum()), float(self._busy.sum())
        stats = OperatorStats(
            received=self._received,
            processed=processed,
            emitted=processed * selectivity,
            queued=self.waiting,
            busy=busy,
            active=active,
            dropped=self._dropped,
            # Each event is a unit of its own, with the moments of its distribution.
            units=processed,
            squares=busy**2 / processed * (1 + self._variation**2) if processed else 0.0,
            replicas={
                number: ReplicaStats(
                    float(self._processed[number]),
                    float(self._busy[number]),
                    float(self._events[number]),
                    float(self._worked[number]) / duration,
                    self._cores[number] if self._cores else None,
                )
                for number in range(self._pool)
                if number < active or self._processed[number] > 0
            },
        )
        self._forget()
        return stats

    def busy(self) -> Floats:
        """The part of the last grid's time for which every replica was busy."""
        return np.minimum((self._busy - self._began) / sum(self._lengths), 1.0)

    def end_interval(self, duration: float) -> None:
        """Tell producers how busy replicas were in it (PA-SPS equation 1)."""
        self._router.tell_utilization(np.minimum(self._interval / duration, 1.0), duration)
        self._interval = np.zeros(self._pool)

    def _count(self, served: Floats, done: Floats) -> None:
        """Replicas have processed these events, with this many seconds of work."""
        busy = done / self._speeds
        self._processed += served
        self._busy += busy
        self._interval += busy
        self._worked += done

    def _report_loads(self, inflow: float, served: Floats, busy: Floats, seconds: float) -> None:
        """Count, and at the end of a period tell producers what waits and how fast replicas are."""
        since = self._since
        since.received += inflow
        since.served += served
        since.busy += busy
        since.seconds += seconds
        if since.seconds < self._report - 1e-9:
            return
        each = np.divide(since.busy, since.served, out=np.zeros(self._pool), where=since.served > 0)
        loads = ReplicaLoads(
            tuple(self._events.tolist()),
            tuple(each.tolist()),
            tuple(np.minimum(since.busy / since.seconds, 1.0).tolist()),
            since.received / since.seconds,
            since.seconds,
        )
        self._router.learn_loads(loads)
        self._since = SinceReport(self._pool)

    def _take(self, inflow: float, active: int) -> tuple[Floats, Floats]:
        """Let in what comes; returns the share that each replica got, and what of it was let in."""
        if inflow <= 0:
            return np.zeros(self._pool), np.ones(self._pool)
        events, work = self._router.route(inflow, active, self._producers)
        admitted = np.where(self._work > self._time_out * self._speeds, 0.0, 1.0)
        self._dropped += float((events * (1 - admitted)).sum())
        self._events = self._events + events * admitted
        self._work = self._work + work * admitted
        return events / inflow, admitted

    def _spill(self) -> float:
        """Drop what is above the bound, from all alike; returns how many events that is."""
        overflow = self.waiting - self._bound
        keep = self._bound / self.waiting
        self._events, self._work = self._events * keep, self._work * keep
        self._dropped += overflow
        self.waiting = self._bound
        return overflow

    def _lose_all(self, inflow: float) -> None:
        self._dropped += self.waiting + inflow
        self._events, self._work = np.zeros(self._pool), np.zeros(self._pool)
        self.waiting = 0.0
        self._log(np.zeros(self._pool), np.zeros(self._pool))

    def _log(self, routed: Floats, admitted: Floats) -> None:
        self._routed.append(routed)
        self._admitted.append(admitted)
        self._works.append(self._work)

    def _forget(self) -> None:
        self._received = self._dropped = 0.0
        self._processed = np.zeros(self._pool)
        self._busy = np.zeros(self._pool)
        self._worked = np.zeros(self._pool)
        self._began = np.zeros(self._pool)
