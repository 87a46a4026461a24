"""The same run in less time, with fewer events, or with another grouping.

Faster: a trace is played in less time, and decisions come sooner. Events come at the published
rates and take the published time, so as many replicas are needed as before. Intervals, samples and
restarts are as much shorter as the trace. So are queues that grow while a replica is missing, and
with them the latency that they make: what is measured at one speed compares with what is simulated
at the same speed, not with a run at another.

Fewer events: each takes as much longer, so as many replicas are needed as before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from elastream.control.run import Run
from elastream.core.groupings import GROUPINGS
from elastream.core.service_times import ByValue, ServiceTime
from elastream.engines.simulation import SimulationSettings
from elastream.predictors.base import Forecast, Predictor, Samples
from elastream.workloads.applications import Application
from elastream.workloads.traces import Trace
from elastream.workloads.waiting import NUMBER


def faster(run: Run, speed: float) -> Run:
    """The run at this many times the speed."""
    trace = run.trace
    return replace(
        run,
        trace=Trace(trace.times / speed, trace.values / speed, trace.step / speed),
        predictor=AtPace(run.predictor, speed),
        td=run.td / speed,
        throughput_window=run.throughput_window / speed,
        settings=_faster_settings(run.settings, speed),
    )


def _faster_settings(settings: SimulationSettings, speed: float) -> SimulationSettings:
    restart, time_out = settings.restart_downtime, settings.time_out
    return replace(
        settings,
        step=settings.step / speed,
        sample=settings.sample / speed,
        restart_downtime=None if restart is None else restart / speed,
        time_out=None if time_out is None else time_out / speed,
    )


class AtPace(Predictor):
    """A model that sees the samples that there would be at the published speed.

    Some depend on how large samples are: `ann` divides them by 1,000, and a trained network has
    learned from those of its trace.
    """

    def __init__(self, predictor: Predictor, speed: float) -> None:
        self.name = predictor.name
        self.wants = predictor.wants
        self._predictor = predictor
        self._speed = speed

    def predict(self, history: ArrayLike, horizon: int) -> Forecast:
        """Forecast samples of the length that they really have."""
        made = self._predictor.predict(self._speed * np.asarray(history), horizon)
        quantiles = {chance: values / self._speed for chance, values in made.quantiles.items()}
        return replace(made, values=made.values / self._speed, quantiles=quantiles)

    def _extrapolate(self, history: Samples, horizon: int) -> Forecast:
        return self.predict(history, horizon)


def with_quicker_operators(application: Application, times: float) -> Application:
    """The same application, whose operators take this many times less for an event."""
    topology, behaviour = application.topology, application.behaviour
    operators = tuple(
        replace(of, execution_time=of.execution_time and of.execution_time / times)
        for of in topology.operators
    )
    quicker = {
        name: replace(of, time=_quicker(of.time, times)) for name, of in behaviour.operators.items()
    }
    return Application(
        replace(topology, operators=operators), replace(behaviour, operators=quicker)
    )


def with_grouping(application: Application, grouping: str) -> Application:
    """The same application with this grouping everywhere; one that needs a key gets the number."""
    needs_key = GROUPINGS[grouping]().needs_key
    topology = application.topology
    operators = tuple(
        replace(of, grouping=grouping, key=(of.key or NUMBER) if needs_key else None)
        for of in topology.operators
    )
    return replace(application, topology=replace(topology, operators=operators))


def _quicker(time: ServiceTime, times: float) -> ServiceTime:
    if isinstance(time, ByValue):
        return replace(time, seconds=tuple(each / times for each in time.seconds))
    quicker: ServiceTime = replace(time, mean=time.mean / times)  # type: ignore[type-var]
    return quicker
