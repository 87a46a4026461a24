"""The loop: every interval it monitors, analyzes, plans and executes, and records what it did."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from elastream.control.analyze import Analyzer
from elastream.control.execute import Executor
from elastream.control.monitor import Monitor
from elastream.control.plan import Planner
from elastream.core.decision import Change, Plan
from elastream.core.stats import IntervalStats
from elastream.engines.base import Engine
from elastream.errors import NotReadyError
from elastream.policies.base import Policy
from elastream.policies.guards import Guard
from elastream.predictors.base import Forecast, Predictor

log = logging.getLogger(__name__)


class Outcome(StrEnum):
    """What became of a cycle."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    ADVISED = "advised"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one cycle measured, expected, proposed, planned and changed."""

    time: float
    """The engine's clock when it ended, in seconds."""
    outcome: Outcome
    note: str = ""
    """Why it was skipped or failed, or why a forecast is not the model's own."""
    stats: IntervalStats | None = None
    forecast: Forecast | None = None
    """The input of the next intervals, in events per interval."""
    proposal: Plan | None = None
    """What the policy wanted."""
    plan: Plan | None = None
    """What the guards allowed."""
    changes: tuple[Change, ...] = ()
    """What was asked of the engine, or would have been."""


class ControlLoop:
    """Runs one policy with one predictor over one engine.

    Args:
        engine: Whatever runs the pipeline.
        policy: Decides on replicas.
        predictor: Forecasts the input, for policies that want a forecast.
        td: The length of an interval, in seconds (PA-SPS: 30).
        guards: Limits around the policy.
        look_back: How many samples the predictor sees (PA-SPS: 100).
        advice_only: Plans are recorded, not applied.
        record: Called with every cycle, such as `History.record`.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        predictor: Predictor,
        *,
        td: float = 30.0,
        guards: Sequence[Guard] = (),
        look_back: int = 100,
        advice_only: bool = False,
        record: Callable[[Cycle], object] | None = None,
    ) -> None:
        self.engine = engine
        self.monitor = Monitor(engine, td)
        self.analyzer = Analyzer(engine.topology, predictor, look_back)
        self.planner = Planner(policy, guards)
        self.executor = Executor(engine, advice_only)
        self._record = record

    def run(self, cycles: int) -> Iterator[Cycle]:
        """Go through so many cycles, one whenever the next is asked for."""
        for _ in range(cycles):
            yield self.cycle()

    def cycle(self) -> Cycle:
        """Wait for the end of the interval, then decide on the next one."""
        done = self._attempt()
        if self._record:
            try:
                self._record(done)
            except Exception:  # A full disk must not stop the pipeline.
                log.exception("the cycle at %.0f s could not be recorded", done.time)
        return done

    def _attempt(self) -> Cycle:
        stats = None
        try:
            stats = self.monitor.collect()
            return self._decide(stats)
        except NotReadyError as wait:
            return Cycle(self.engine.clock.now(), Outcome.SKIPPED, str(wait), stats)
        except Exception as error:  # The next cycle tries again; the pipeline runs on as it is.
            log.exception("a cycle of the control loop failed")
            note = f"{type(error).__name__}: {error}"
            return Cycle(self.engine.clock.now(), Outcome.FAILED, note, stats)

    def _decide(self, stats: IntervalStats) -> Cycle:
        now = self.engine.clock.now()
        context = self.analyzer.analyze(
            self.monitor.past,
            self.monitor.samples,
            self.planner.policy,
            tuple(self.planner.proposals),
            now,
        )
        proposal, plan = self.planner.plan(context)
        changes = self.executor.execute(plan, context.active)
        advised = self.executor.advice_only and changes
        return Cycle(
            time=now,
            outcome=Outcome.ADVISED
            if advised
            else Outcome.CHANGED
            if changes
            else Outcome.UNCHANGED,
            note=(context.forecast.fallback or "") if context.forecast else "",
            stats=stats,
            forecast=context.forecast,
            proposal=proposal,
            plan=plan,
            changes=changes,
        )
