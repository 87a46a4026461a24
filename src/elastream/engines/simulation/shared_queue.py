"""One queue for all replicas of an operator, as a fluid in time steps.

Replicas that take from one queue, or that are fed evenly, are c servers with one queue. In a step
of h seconds they can process c·h/et events. With random execution times that number is random:

- exponential: a Poisson number. Events in service stay in the count, and in short steps fewer are
  completed while replicas are idle (`birth_death`): exact for M/M/c as steps get short.
- others: a gamma distributed number with mean c·h/et and variance mean·variation²: over a long time
  the completions of busy replicas have these moments, whatever the distribution.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elastream.core.service_times import Exponential, ServiceTime
from elastream.core.stats import OperatorStats, ReplicaStats
from elastream.engines.base import WhenFull
from elastream.engines.simulation.birth_death import birth_death
from elastream.engines.simulation.curves import FifoCurves, Grid
from elastream.engines.simulation.settings import SimulationSettings
from elastream.engines.simulation.time_out import TimeOut

Floats = NDArray[np.float64]

_MANY = 10


class SharedQueue:
    """The events that wait for one operator, and the replicas that take them."""

    def __init__(
        self,
        time: ServiceTime,
        settings: SimulationSettings,
        random: np.random.Generator,
        cores: tuple[int, ...] | None = None,
    ) -> None:
        self._time = time
        self._cores = cores
        self._bound = settings.queue_bound
        # Events that have no room wait upstream, so none is ever lost for want of it.
        self._spill = math.inf if settings.when_full is WhenFull.BLOCK else settings.queue_bound
        self._time_out = None if settings.time_out is None else TimeOut(settings.time_out)
        self._random = random
        self._in_function = settings.in_function(time.mean)
        self._memoryless = isinstance(time, Exponential)
        self.waiting = 0.0
        self._came = self._gone = 0.0
        self._lost: Floats | None = None
        self._refused: Floats | None = None
        self._received = self._processed = self._dropped = 0.0
        self._saturated = self._saturated_events = 0.0

    def begin(self, grid: Grid, active: NDArray[np.int64], speeds: Floats, producers: int) -> None:
        """Prepare for the steps of a grid; nobody chooses among replicas."""
        self._grid = grid
        self._active = active
        self._speeds = speeds
        self._before = self._processed
        # In a step of many execution times it makes no odds that a few replicas were idle.
        self._fine = self._memoryless and bool(grid.lengths.min() < _MANY * self._time.mean)
        together = self._in_function * speeds.cumsum()[active - 1]
        self.capacity = self._drawn(together * grid.lengths / self._time.mean)

    def free(self, inflow: Floats) -> Floats | None:
        """What is processed in every step if this comes and nothing binds; None if something does.

        w_k = max(w_k-1 + inflow_k - capacity_k, 0) is a sum that is reflected at zero, and the
        reflection is the running minimum of the sum (Lindley, Skorokhod).
        """
        if self._grid.restarts:
            return None
        if self._fine:
            waits = birth_death(self.waiting, inflow, self.capacity, self._active, self._random)
        else:
            total = (inflow - self.capacity).cumsum()
            waits = total - np.minimum.accumulate(np.minimum(total, -self.waiting))
        if waits.max() > self._bound:
            return None
        self._waits = np.concatenate([[self.waiting], waits])
        self._comes = self._came + np.concatenate([[0.0], inflow.cumsum()])
        starts, comes, before = self._grid.starts, self._comes[:-1], self._waits[:-1]
        if self._time_out is not None and self._time_out.strikes(starts, comes, before):
            return None
        served: Floats = np.maximum(inflow - (self._waits[1:] - self._waits[:-1]), 0.0)
        self._found = float(inflow.sum()), float(served.sum())
        # What memoryless replicas work on is counted among what waits.
        self._full = waits > (self._active if self._memoryless else 0)
        self._served = served
        self._lost = self._refused = None
        return served

    def commit(self) -> None:
        """Let happen what `free` has found."""
        received, processed = self._found
        self.waiting, self._came = float(self._waits[-1]), float(self._comes[-1])
        self._received += received
        self._processed += processed
        if self._full.any():
            self._saturated += float((self._active * self._grid.lengths)[self._full].sum())
            self._saturated_events += float(self._served[self._full].sum())
        if self._time_out is not None:
            self._time_out.remember(self._grid.starts.tolist(), self._comes[:-1].tolist())

    def begin_steps(self) -> None:
        """Prepare for single steps, because something binds."""
        self._starts: list[float] = self._grid.starts.tolist()
        self._down: list[bool] = self._grid.down.tolist()
        self._servers: list[int] = self._active.tolist()
        self._most: list[float] = self.capacity.tolist()
        steps = len(self._starts)
        self._waits, self._comes = np.full(steps + 1, self.waiting), np.full(steps + 1, self._came)
        self._lost, self._refused = np.zeros(steps), np.zeros(steps)

    def room(self, step: int, limit: float) -> float:
        """How many events it can take in this step, if it may process `limit` of them."""
        if self._down[step]:
            return math.inf
        return max(self._bound - self.waiting, 0.0) + limit

    def step(self, step: int, inflow: float, limit: float) -> float:
        """Take in and process events, at most `limit`; returns how many were processed."""
        waiting = self.waiting
        expired = overflow = served = 0.0
        if self._down[step]:
            expired, waiting, overflow = waiting, 0.0, inflow
        else:
            if self._time_out is not None:
                expired = self._time_out.expired(self._starts[step], self._came, waiting)
                waiting -= expired
            waiting += inflow
            if limit > 0 and waiting > 0:
                if self._fine and waiting < self._servers[step]:
                    limit = self._random.binomial(int(limit), waiting / self._servers[step])
                served = limit if limit < waiting else waiting
                waiting -= served
            if waiting > self._spill:
                overflow = waiting - self._spill
                waiting = self._spill
        self.waiting = waiting
        self._came += inflow - overflow
        self._received += inflow
        self._processed += served
        if waiting > (self._servers[step] if self._memoryless else 0) and limit >= self._most[step]:
            self._saturated += self._servers[step] * float(self._grid.lengths[step])
            self._saturated_events += served
        if expired or overflow:
            self._dropped += expired + overflow
            self._log_losses(step, expired, overflow / inflow if inflow > 0 else 0.0)
        self._comes[step + 1] = self._came
        self._waits[step + 1] = waiting
        return served

    def curves(self) -> FifoCurves:
        """What happened in the steps since `begin`."""
        waits = self._waits
        if self._memoryless:
            # Those that a replica works on have left the queue.
            busy = np.concatenate([self._active[:1], self._active])
            waits = np.maximum(waits - busy, 0.0)
        gone = self._comes - waits
        if self._memoryless:
            gone = np.maximum.accumulate(np.maximum(gone, self._gone))
        self._gone = float(gone[-1])
        idle = self._lost is None and not waits.any()
        return FifoCurves(self._grid.times, self._comes, gone, self._lost, self._refused, idle)

    def busy(self) -> Floats:
        """Those that are active share alike what was processed."""
        seconds = (self._processed - self._before) * self._time.mean
        active = int(self._active[-1])
        part = seconds / float(self._speeds[:active].sum()) / float(self._grid.lengths.sum())
        return np.where(np.arange(len(self._speeds)) < active, min(part, 1.0), 0.0)

    def end_interval(self, duration: float) -> None:
        """Nothing to report."""

    def collect(self, active: int, duration: float, selectivity: float) -> OperatorStats:
        """The statistics since the last call; replicas share alike."""
        processed, work = self._processed, self._processed * self._time.mean
        busy = work / float(self._speeds[:active].mean())
        each, seconds, waiting = processed / active, busy / active, self.waiting / active
        replicas = {
            number: ReplicaStats(
                each,
                seconds,
                waiting,
                work / active / duration,
                self._cores[number] if self._cores else None,
            )
            for number in range(active)
        }
        stats = OperatorStats(
            received=self._received,
            processed=processed,
            emitted=processed * selectivity,
            queued=self.waiting,
            busy=busy,
            active=active,
            dropped=self._dropped,
            saturated=self._saturated,
            saturated_events=self._saturated_events,
            # Each event is a unit of its own, with the moments of its distribution.
            units=processed,
            squares=busy**2 / processed * (1 + self._time.variation**2) if processed else 0.0,
            replicas=replicas,
        )
        self._received = self._processed = self._dropped = self._before = 0.0
        self._saturated = self._saturated_events = 0.0
        return stats

    def _drawn(self, mean: Floats) -> Floats:
        if self._memoryless:
            return self._random.poisson(mean).astype(np.float64)
        square = self._time.variation**2
        return mean if square == 0 else self._random.gamma(mean / square, square)

    def _log_losses(self, step: int, expired: float, refused: float) -> None:
        assert self._lost is not None
        assert self._refused is not None
        self._lost[step], self._refused[step] = expired, refused
