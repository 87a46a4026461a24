"""One run: an application under a policy, on a trace; in the simulator, or on another engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from elastream.control import ControlLoop, Cycle, Outcome
from elastream.control.beginning import Beginning
from elastream.core.evaluation import evaluate
from elastream.core.folding import FoldedBehaviour
from elastream.core.metrics import RunMetrics
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.engines.base import Engine
from elastream.engines.simulation import SimulationEngine, SimulationSettings
from elastream.engines.simulation.flow import Gains
from elastream.errors import InvalidInputError
from elastream.policies import Policy
from elastream.policies.guards import Guard
from elastream.predictors import Predictor
from elastream.workloads.applications import Application
from elastream.workloads.traces import Trace

FINEST_STEP, COARSEST_STEP, STEPS_PER_INTERVAL = 0.25, 1.0, 120
FEWEST_STEPS = 5
"""At least this many per interval: coarser steps would flatter a fast clock."""


@dataclass(frozen=True)
class Run:
    """What to run; the defaults are the parameters of PA-SPS section 4.1.4."""

    application: Application
    trace: Trace
    policy: Policy
    predictor: Predictor
    td: float = 30.0
    look_back: int = 100
    """How many samples the predictor sees."""
    throughput_window: float = 5.0
    """Over how many seconds throughput is compared with the input; at least a sample."""
    overprovisioned: float | None = None
    """r_over of all operators together; by default their pools."""
    settings: SimulationSettings = field(default_factory=SimulationSettings)
    guards: tuple[Guard, ...] = ()

    @cached_property
    def folded(self) -> FoldedBehaviour:
        """The application with its chains, as a policy sees it."""
        return FoldedBehaviour.of(self.application.topology, self.application.behaviour)

    @property
    def intervals(self) -> int:
        """As many as the trace fills, including the one in which it ends."""
        return math.ceil(self.trace.duration / self.td - 1e-9)

    @property
    def initial(self) -> dict[str, int]:
        """The replicas that a policy fixes from the start, and those of the settings.

        All others start with their minimum, as the papers' experiments do.
        """
        known = self._beginning
        first = self.policy.before(known.topology, known.shares, known.execution_times, self.td)
        return {**first, **self.settings.initial}

    def ready(self) -> Run:
        """The same run, starting with what the policy wants for the first interval's input."""
        first = self._beginning.replicas(self.policy, self.guards)
        return replace(
            self, settings=replace(self.settings, initial={**first, **self.settings.initial})
        )

    @property
    def _beginning(self) -> Beginning:
        topology, behaviour = self.folded.chains.topology, self.folded.behaviour
        gains = Gains.of(topology, behaviour).targets
        rate = inputs_per_interval(self.trace, self.td)[0] / self.td
        return Beginning(
            topology,
            shares={(p, name): gain for p, edges in gains.items() for name, gain in edges.items()},
            execution_times={n: behaviour.of(topology, n).time.mean for n in topology.by_name},
            td=self.td,
            rates={source.name: rate for source in topology.sources},
        )

    def simulate(self, after_each: Callable[[Cycle], object] | None = None) -> Result:
        """Run all intervals in the simulator.

        Args:
            after_each: Called with every cycle of the control loop, to show progress.
        """
        application = self.application
        settings = replace(self.settings, initial=self.initial)
        engine = SimulationEngine(application.topology, self.trace, application.behaviour, settings)
        windows: list[IntervalStats] = []
        engine.watch(windows.append, max(self.throughput_window, self.settings.sample))
        return self.control(engine, windows, after_each)

    def control(
        self,
        engine: Engine,
        windows: Sequence[IntervalStats] = (),
        after_each: Callable[[Cycle], object] | None = None,
    ) -> Result:
        """Run all intervals on an engine that plays the trace, and close it.

        Args:
            engine: What runs the application.
            windows: Where it puts what it measures in the windows over which throughput is
                compared.
            after_each: Called with every cycle of the control loop, to show progress.
        """
        loop = ControlLoop(
            engine,
            self.policy,
            self.predictor,
            td=self.td,
            guards=self.guards,
            look_back=self.look_back,
        )
        cycles = []
        with closing(engine):
            for cycle in loop.run(self.intervals):
                if cycle.outcome is Outcome.FAILED:
                    raise InvalidInputError(
                        f"the policy {self.policy.name!r} failed at {cycle.time:g} s: {cycle.note}"
                    )
                cycles.append(cycle)
                if after_each:
                    after_each(cycle)
        return Result(self, tuple(cycles), tuple(windows), engine.topology)


@dataclass(frozen=True)
class Result:
    """What a run measured and decided, cycle by cycle."""

    run: Run
    cycles: tuple[Cycle, ...]
    windows: tuple[IntervalStats, ...] = ()
    """What was measured in the windows over which throughput is compared."""
    ran: Topology | None = None
    """What the engine ran: here, a chain is one operator."""

    @property
    def topology(self) -> Topology:
        """What ran: here, a chain is one operator."""
        return self.ran or self.run.folded.chains.topology

    @property
    def stats(self) -> list[IntervalStats]:
        """What was measured in every interval."""
        return [cycle.stats for cycle in self.cycles if cycle.stats]

    @property
    def forecasts(self) -> list[float | None]:
        """The forecast of every interval's input by the one before, in events.

        None for the first, and for the one in which the trace ends: it is cut short.
        """
        ahead = [float(c.forecast.values[0]) if c.forecast else None for c in self.cycles]
        expected = [None, *ahead[:-1]]
        whole = int(self.run.trace.duration / self.run.td + 1e-9)
        return expected[:whole] + [None] * (len(expected) - whole)

    @property
    def metrics(self) -> RunMetrics:
        """The metrics of the whole run."""
        return evaluate(
            self.topology, self.stats, self.forecasts, self.run.overprovisioned, self.windows
        )


def step_for(td: float) -> float:
    """A time step that makes an interval smooth and a long run fast, in seconds.

    >>> step_for(0.25), step_for(30.0), step_for(3600.0)
    (0.05, 0.25, 1.0)
    """
    usual = min(max(td / STEPS_PER_INTERVAL, FINEST_STEP), COARSEST_STEP)
    return min(usual, td / FEWEST_STEPS)


def inputs_per_interval(trace: Trace, td: float) -> list[float]:
    """What the trace brings in every interval, in events: the future that the oracle reads."""
    edges = trace.step * np.arange(len(trace.values) + 1)
    total = np.concatenate([[0.0], np.cumsum(trace.values)])
    ends = td * np.arange(math.ceil(trace.duration / td - 1e-9) + 1)
    return [float(events) for events in np.diff(np.interp(ends, edges, total))]
