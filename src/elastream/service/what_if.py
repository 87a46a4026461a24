"""What if: the recorded input again, in the simulator, with another policy and predictor.

The simulated operators behave as the real ones were measured to: how long an event takes, how many
it becomes, and where these go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from elastream.control import ControlLoop, Settings
from elastream.core.behaviour import measured_behaviour
from elastream.core.evaluation import evaluate
from elastream.core.joining import joined
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.engines.simulation import SimulationEngine, SimulationSettings
from elastream.errors import InvalidSettingError, NotReadyError
from elastream.policies import Policy
from elastream.predictors import Predictor
from elastream.service import control_messages as messages
from elastream.service.control_api import CHANGE_REFUSALS, RunningPipeline
from elastream.workloads.traces import Trace, evenly

LONGEST_SECONDS = 20.0
LEAST_INTERVALS = 2

Side = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """What was measured, and under which settings."""

    topology: Topology
    intervals: Sequence[IntervalStats]
    settings: Settings
    look_back: int

    def compare(
        self, policy: Policy, predictor: Predictor, now: Callable[[], float] = monotonic
    ) -> dict[str, Side]:
        """The recorded run and the replayed one."""
        if len(self.intervals) < LEAST_INTERVALS:
            raise NotReadyError(
                f"there is nothing to replay yet: wait until {LEAST_INTERVALS} intervals are over"
            )
        replayed = self._replayed(policy, predictor, deadline=now() + LONGEST_SECONDS, now=now)
        return {
            "recorded": self._side(self.settings.policy, self.settings.predictor, self.intervals),
            "replayed": self._side(policy.name, predictor.name, replayed),
        }

    def _replayed(
        self,
        policy: Policy,
        predictor: Predictor,
        deadline: float,
        now: Callable[[], float],
    ) -> list[IntervalStats]:
        traces, whole = self._traces(), joined(self.intervals, 0)
        first = self.intervals[0].operators
        sample = next(iter(traces.values())).step
        engine = SimulationEngine(
            self.topology,
            traces,
            measured_behaviour(self.topology, whole),
            SimulationSettings(sample=sample, initial={n: of.active for n, of in first.items()}),
        )
        loop = ControlLoop(engine, policy, predictor, td=self.settings.td, look_back=self.look_back)
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
        duration = sum(part.duration for part in self.intervals)
        found = {}
        for source in self.topology.sources:
            parts = [part.sources[source.name] for part in self.intervals]
            # Not every short interval has a sampling window that closed in it.
            whole = all(part.samples for part in parts)
            samples = [s for part in parts for s in (part.samples if whole else (part.emitted,))]
            found[source.name] = evenly(np.array(samples), duration / len(samples))
        return found

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
            chosen = steering.chosen(body.policy, body.predictor)
            recording = Recording(
                live.topology, live.intervals(), steering.settings, running.look_back
            )
            return recording.compare(*chosen)
        finally:
            busy.release()
