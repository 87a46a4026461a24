"""The simulator: an engine in virtual time.

>>> from elastream import Pipeline
>>> from elastream.core.decision import Plan
>>> from elastream.workloads.traces import Trace
>>> pipeline = Pipeline()
>>> lines = pipeline.source("lines")
>>> _ = pipeline.add(len, name="count", after=lines, execution_time=0.01)
>>> trace = Trace(np.arange(60.0), np.full(60, 150.0), step=1.0)
>>> engine = SimulationEngine(pipeline.topology(), trace)
>>> engine.clock.sleep_until(10)
>>> engine.observe().operators["count"].queued
500.0
>>> engine.apply(Plan({"count": 2}))
>>> engine.clock.sleep_until(60)
>>> engine.observe().operators["count"].queued
0.0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from elastream.core.behaviour import Behaviour
from elastream.core.decision import Plan
from elastream.core.folding import FoldedBehaviour
from elastream.core.service_times import ByValue
from elastream.core.stats import IntervalStats, Latency, OperatorStats, SourceStats
from elastream.core.topology import Topology
from elastream.engines.base import Clock, Watcher, WhenFull
from elastream.engines.simulation.clock import VirtualClock, WindowClock
from elastream.engines.simulation.cores import Cores
from elastream.engines.simulation.curves import FifoCurves, Grid, ReplicaCurves
from elastream.engines.simulation.flow import Flow, Gains
from elastream.engines.simulation.inputs import Input, traces_by_source
from elastream.engines.simulation.queue import Queue
from elastream.engines.simulation.replica_queues import ReplicaQueues
from elastream.engines.simulation.replicas import ReplicaSchedule
from elastream.engines.simulation.settings import SimulationSettings
from elastream.engines.simulation.shared_queue import SharedQueue
from elastream.engines.simulation.sources import SourceLog
from elastream.engines.simulation.tracker import TagTracker
from elastream.engines.simulation.windows import WindowLog
from elastream.errors import InvalidInputError
from elastream.workloads.traces import Trace

Floats = NDArray[np.float64]

DEFAULTS = SimulationSettings()
CORE_SECONDS = 2.0
"""How often the speeds of replicas that share cores are recomputed, in seconds."""
AS_DECLARED = Behaviour()


class SimulationEngine:
    """Simulates a topology, up to the time waited for, whenever somebody looks."""

    def __init__(
        self,
        topology: Topology,
        traces: Trace | Mapping[str, Trace],
        behaviour: Behaviour = AS_DECLARED,
        settings: SimulationSettings = DEFAULTS,
        clock: Clock | None = None,
    ) -> None:
        self._folded = FoldedBehaviour.of(topology, behaviour)
        self.chains = self._folded.chains
        self.topology = topology = self.chains.topology
        behaviour = self._folded.behaviour
        self.clock = clock or VirtualClock()
        self._settings = settings = self._of_heads(settings)
        self._behaviours = {name: behaviour.of(topology, name) for name in topology.by_name}
        seeds = np.random.SeedSequence(settings.seed).spawn(len(topology.order) + 1)
        random = dict(zip(topology.order, map(np.random.default_rng, seeds), strict=False))
        self._replicas = ReplicaSchedule(topology, settings)
        self._cores = Cores(topology, settings.cores)
        self._inputs = {
            name: SourceLog(Input(trace, settings.arrivals, random[name]), settings.sample)
            for name, trace in traces_by_source(topology, traces).items()
        }
        gains = Gains.of(topology, behaviour)
        self._queues = {name: self._queue(name, random[name]) for name in topology.by_name}
        blocking = settings.when_full is WhenFull.BLOCK
        self._flow = Flow(topology, gains, self._queues, blocking)
        self._tags = TagTracker(
            topology, behaviour, gains, settings, np.random.default_rng(seeds[-1])
        )
        pools = {name: of.pool for name, of in topology.by_name.items()}
        self._speeds = {name: self._behaviours[name].speeds_of(pools[name]) for name in pools}
        self._busy = {name: np.zeros(pool) for name, pool in pools.items()}
        self._simulated = self._observed = self._collected = 0.0
        self._interval = 0
        self._log: WindowLog | None = None
        self._latencies: list[tuple[Floats, Floats]] = []
        self._closed = False

    def _of_heads(self, settings: SimulationSettings) -> SimulationSettings:
        """Of a chain, the replicas of its first operator count."""
        first = {n: r for n, r in settings.initial.items() if n not in self.chains.chained}
        return replace(settings, initial=first)

    def observe(self) -> IntervalStats:
        """The statistics of the time since the last call, or since the start."""
        self._advance()
        if self._simulated <= self._observed:
            raise InvalidInputError(
                f"no time has passed since the last look at {self._simulated:g} s: "
                "sleep until a later time first"
            )
        if self._log is None:
            stats = self._collect(self._interval)
        else:
            self._log_stretch(self._log)
            stats = self._log.interval(self._interval)
        for queue in self._queues.values():
            queue.end_interval(self._simulated - self._observed)
        self._observed = self._simulated
        self._interval += 1
        return stats

    def watch(self, watcher: Watcher, window: float | None = None) -> None:
        """From now on, stop at the end of every window, and tell what happened in it.

        Args:
            watcher: Who wants to know.
            window: How long a window is, in seconds; a sampling window unless given. It is the
                same for all who watch.
        """
        length = window or self._settings.sample
        if self._log is not None:
            self._log.listen(watcher, length)
            return
        log = self._log = WindowLog(watcher, length)

        def window_ended() -> None:
            self._advance()
            self._log_stretch(log)
            log.end_window()

        self.clock = WindowClock(self.clock, length, window_ended)

    def _log_stretch(self, log: WindowLog) -> None:
        if self._simulated > self._collected:
            log.add(self._collect(self._interval))

    def _collect(self, interval: int) -> IntervalStats:
        """The statistics since the last call."""
        duration = self._simulated - self._collected
        stats = IntervalStats(
            interval=interval,
            duration=duration,
            sources={
                name: SourceStats(*log.collect(), samples=log.samples())
                for name, log in self._inputs.items()
            },
            operators={
                name: self._folded.unfolded(name, self._operator(name, duration))
                for name in self._queues
            },
            edges=self._flow.collect_edges(),
            latency=self._latency(),
            sample=self._settings.sample,
            executors=self._replicas.executors.collect() if self._replicas.executors else None,
        )
        self._collected = self._simulated
        return stats

    def _operator(self, name: str, duration: float) -> OperatorStats:
        active, pending = self._replicas.active[name], self._replicas.pending(name)
        selectivity = self._behaviours[name].selectivity
        stats = self._queues[name].collect(active, duration, selectivity)
        return replace(stats, pending=pending) if pending else stats

    def apply(self, plan: Plan) -> None:
        """Activate and deactivate replicas from now on."""
        self._advance()
        self._replicas.apply(plan, self._simulated)

    def close(self) -> None:
        """Simulate nothing more."""
        self._closed = True

    def _advance(self) -> None:
        """Simulate up to now."""
        if self._closed:
            raise InvalidInputError("the simulation is closed: start a new engine")
        now = self.clock.now()
        while now > self._simulated:
            longest = CORE_SECONDS if self._cores.shared else math.inf
            self._advance_to(min(now, self._simulated + longest))

    def _advance_to(self, now: float) -> None:
        grid = self._grid(self._simulated, now)
        speeds = self._speeds
        if self._cores.shared:
            left = self._cores.speeds(self._busy)
            speeds = {name: own * left[name] for name, own in speeds.items()}
        for name, queue in self._queues.items():
            active = self._replicas.profile(name, grid.starts)
            queue.begin(grid, active, speeds[name], self._producers(name))
        arrivals = {name: log.arrive(grid) for name, log in self._inputs.items()}
        held = self._flow.run(len(grid.starts), arrivals)
        curves: dict[str, FifoCurves | ReplicaCurves] = {
            name: queue.curves() for name, queue in self._queues.items()
        }
        for name, log in self._inputs.items():
            curves[name] = log.curves(grid, held[name])
        if self._cores.shared:
            self._busy = {name: queue.busy() for name, queue in self._queues.items()}
        self._latencies.append(self._tags.follow(grid, curves))
        self._replicas.pass_to(now)
        self._simulated = now

    def _grid(self, start: float, end: float) -> Grid:
        """Steps of equal length, cut where replicas or the pipeline come back."""
        steps = max(math.ceil((end - start) / self._settings.step - 1e-9), 1)
        times = np.linspace(start, end, steps + 1)
        breaks = self._replicas.breaks(start, end)
        if breaks:
            times = np.unique(np.concatenate([times, breaks]))
        return Grid.of(times, self._replicas.down_until)

    def _queue(self, name: str, random: np.random.Generator) -> Queue:
        """One queue for all while replicas that are fed evenly are alike, unless told otherwise."""
        operator, behaviour = self.topology.by_name[name], self._behaviours[name]
        router, pool, cores = operator.router, operator.pool, self._cores.of(name)
        unlike = len(set(behaviour.speeds_of(pool).tolist())) > 1 or self._cores.shared
        own = self._settings.own_queues or unlike or isinstance(behaviour.time, ByValue)
        if own and not router.shared_queue:
            return ReplicaQueues(behaviour.time, router, pool, self._settings, random, cores)
        return SharedQueue(behaviour.time, self._settings, random, cores)

    def _producers(self, name: str) -> int:
        """How many members send to an operator now."""
        origins = [edge.origin for edge in self.topology.incoming[name]]
        return sum(self._replicas.active.get(origin, 1) for origin in origins)

    def _latency(self) -> Latency | None:
        seconds = np.concatenate([part for part, _ in self._latencies])
        weights = np.concatenate([part for _, part in self._latencies])
        self._latencies = []
        return Latency.of(seconds, weights) if weights.sum() > 0 else None
