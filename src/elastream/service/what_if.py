"""What if: the recorded input again, in the simulator, with another policy and predictor.

The simulated operators behave as the real ones were measured to: how long an event takes, how many
it becomes, and where these go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from elastream.control import ControlLoop, Settings
from elastream.control.run import step_for
from elastream.control.settings import Course
from elastream.core.behaviour import measured_behaviour
from elastream.core.evaluation import evaluate
from elastream.core.joining import joined
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.engines.simulation import SimulationEngine, SimulationSettings
from elastream.errors import InvalidSettingError, NotReadyError
from elastream.service import control_messages as messages
from elastream.service.control_api import CHANGE_REFUSALS, RunningPipeline
from elastream.workloads.traces import Trace, evenly

LONGEST_SECONDS = 20.0
MOST_CYCLES = 4_000
"""A replay has at most so many: an hour at 0.25 s would take as long as a replay may."""
LEAST_INTERVALS = 2

Side = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """What was measured, and under which settings."""

    topology: Topology
    intervals: Sequence[IntervalStats]
    settings: Settings
    look_back: int

    def compare(self, course: Course, now: Callable[[], float] = monotonic) -> dict[str, Side]:
        """The recorded run, and what it would have been on another course."""
        if len(self.intervals) < LEAST_INTERVALS:
            raise NotReadyError(
                f"there is nothing to replay yet: wait until {LEAST_INTERVALS} intervals are over"
            )
        newest = self._newest(MOST_CYCLES * course.settings.td)
        replayed = newest._replayed(course, deadline=now() + LONGEST_SECONDS, now=now)
        names = self.settings.policy, self.settings.predictor
        return {
            "recorded": self._side(*names, newest.intervals),
            "replayed": self._side(course.policy.name, course.predictor.name, replayed),
        }

    def _newest(self, seconds: float) -> Recording:
        """The newest intervals, which together take no longer than this."""
        back = np.cumsum([part.duration for part in reversed(self.intervals)])
        count = max(int(np.searchsorted(back, seconds * (1 + 1e-9), side="right")), LEAST_INTERVALS)
        return replace(self, intervals=self.intervals[-count:])

    def _replayed(
        self, course: Course, deadline: float, now: Callable[[], float]
    ) -> list[IntervalStats]:
        traces, whole, td = self._traces(), joined(self.intervals, 0), course.settings.td
        first = self.intervals[0].operators
        engine = SimulationEngine(
            self.topology,
            traces,
            measured_behaviour(self.topology, whole),
            SimulationSettings(
                step=step_for(td),
                sample=whole.sample or next(iter(traces.values())).step,
                initial={n: of.active for n, of in first.items()},
            ),
        )
        loop = ControlLoop(engine, course.policy, course.predictor, td=td, look_back=self.look_back)
        stats = []
        for cycle in loop.run(until=whole.duration):
            if now() > deadline:
                raise InvalidSettingError(
                    "predictor", f"with it the replay takes longer than {LONGEST_SECONDS:g} s"
                )
            if cycle.stats:
                stats.append(cycle.stats)
        return stats

    def _traces(self) -> dict[str, Trace]:
        """What arrived at every source."""
        return {source.name: self._arrived(source.name) for source in self.topology.sources}

    def _arrived(self, source: str) -> Trace:
        """As fine as it was counted: in sampling windows, or in intervals if they are shorter.

        Intervals need not be alike: people change them while a pipeline runs.
        """
        ends, total = [0.0], [0.0]
        # Of what is held back, only a run's first interval is known to have seen all of it arrive.
        held = self.intervals[0].sources[source].queued if self.intervals[0].interval else 0.0
        for part in self.intervals:
            of = part.sources[source]
            arrived, held = max(of.emitted + of.queued - held, 0.0), of.queued
            windows = np.array(of.samples) if sum(of.samples) > 0 else np.ones(1)
            ends += (
                ends[-1] + part.duration * np.arange(1, len(windows) + 1) / len(windows)
            ).tolist()
            total += (total[-1] + arrived * windows.cumsum() / windows.sum()).tolist()
        step = ends[-1] / (len(ends) - 1)
        edges = step * np.arange(len(ends))
        return evenly(np.diff(np.interp(edges, ends, total)), step)

    def _side(self, policy: str, predictor: str, intervals: Sequence[IntervalStats]) -> Side:
        measured = evaluate(self.topology, intervals)
        latency = measured.latency_ms
        queued = [_waiting(part) for part in intervals]
        return {
            "policy": policy,
            "predictor": predictor,
            "replica_seconds": measured.replica_seconds,
            "latency_mean": latency.mean / 1000 if latency else None,
            "latency_p99": latency.p99 / 1000 if latency else None,
            "backlog": max(queued),
            "time": np.cumsum([part.duration for part in intervals]).tolist(),
            "replicas": [
                float(sum(of.active for of in part.operators.values())) for part in intervals
            ],
            "queued": queued,
        }


def _waiting(stats: IntervalStats) -> float:
    """Events that wait for an operator, or are held back at a source."""
    return sum(of.queued for of in stats.operators.values()) + sum(
        of.queued for of in stats.sources.values()
    )


def add_what_if(app: FastAPI, running: RunningPipeline) -> None:
    """Add it; one replay runs at a time, on a thread."""
    live, steering, busy = running.live, running.steering, Lock()

    @app.post("/api/what-if", response_model=messages.Comparison, responses=CHANGE_REFUSALS)
    def what_if(body: messages.WhatIf) -> Any:
        """Replay the recorded input in the simulator, with another policy and predictor."""
        if not busy.acquire(blocking=False):
            detail = "another replay is under way: wait until it is done"
            return JSONResponse({"detail": detail}, 429, {"Retry-After": "1"})
        try:
            course = steering.chosen(body.policy, body.predictor)
            recording = Recording(
                live.topology, live.intervals(), steering.settings, running.look_back
            )
            return recording.compare(course)
        finally:
            busy.release()
