"""The loop: every interval it monitors, analyzes, plans and executes, and records what it did."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from elastream.control.analyze import Analyzer
from elastream.control.execute import Executor
from elastream.control.health import HealthWatch
from elastream.control.monitor import Monitor
from elastream.control.plan import Planner
from elastream.control.problems import Problems
from elastream.control.settings import Choices, Course, Settings, Steered
from elastream.control.steering import Steering
from elastream.core.decision import Change, Plan
from elastream.core.health import State
from elastream.core.stats import IntervalStats
from elastream.engines.base import Engine
from elastream.errors import EngineError, NotReadyError, described
from elastream.policies.base import Policy
from elastream.policies.guards import Guard
from elastream.predictors.base import Forecast, Predictor

log = logging.getLogger(__name__)

NONE = Choices()
TOLERANCE = 1e-9


class Outcome(StrEnum):
    """The outcome of a cycle."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    ADVISED = "advised"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one cycle measured, forecast, proposed, planned and changed."""

    time: float
    """The engine's clock when it ended, in seconds."""
    outcome: Outcome
    note: str = ""
    """Why it was skipped or failed, or why a forecast is not the model's own."""
    stats: IntervalStats | None = None
    forecast: Forecast | None = None
    """The expected input of the next intervals, in events per interval."""
    proposal: Plan | None = None
    """What the policy proposed."""
    plan: Plan | None = None
    """What the guards left of it."""
    changes: tuple[Change, ...] = ()
    """What the engine was asked to change, or, with advice only, would have been."""

    def is_quiet_after(self, before: Cycle | None) -> bool:
        """Whether nothing in it is worth reporting by itself, after the cycle before.

        While a run is paused, replicas are on their way, or a policy fails, every cycle says the
        same again.
        """
        decided = self.outcome not in (Outcome.SKIPPED, Outcome.FAILED)
        return (decided and not (self.changes or self.note)) or (
            before is not None
            and (self.outcome, self.note) == (before.outcome, before.note)
            and _numbers(self.changes) == _numbers(before.changes)
        )


class ControlLoop:
    """Runs one policy with one predictor over one engine.

    Args:
        engine: Whatever runs the pipeline.
        policy: Decides on replicas.
        predictor: Forecasts the input, for policies that need a forecast.
        td: The length of an interval, in seconds; by default, the policy's.
        guards: Limits on the policy.
        look_back: How many samples the predictor sees (PA-SPS: 100).
        advice_only: Record plans, but do not apply them.
        choices: What people can switch it to while it runs: see `steering`.
        record: Called with every cycle, and with every change that people make, such as
            `History.record`.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        predictor: Predictor,
        *,
        td: float | None = None,
        guards: Sequence[Guard] = (),
        look_back: int = 100,
        advice_only: bool = False,
        choices: Choices = NONE,
        record: Callable[[Cycle | Steered], object] = lambda entry: None,
    ) -> None:
        settings = Settings(
            policy=policy.name,
            predictor=predictor.name,
            td=policy.td if td is None else td,
            advice_only=advice_only,
        )
        course = Course(settings, policy, predictor)
        self.engine = engine
        self.steering = Steering(engine, course, choices, record)
        self.monitor = Monitor(engine)
        self.analyzer = Analyzer(engine.topology, look_back)
        self.planner = Planner(guards)
        self.executor = Executor(engine)
        self.health = HealthWatch(engine, lambda: self.steering.settings.td)
        self.problems = Problems()
        self._record = record
        self._interrupted = False
        self._until = inf

    def run(self, cycles: float = inf, until: float = inf) -> Iterator[Cycle]:
        """Go through cycles, one for every `next`.

        Args:
            cycles: At most this many.
            until: The last one ends at this time of the engine's clock.
        """
        done, self._until = 0, until
        try:
            while done < cycles and self.engine.clock.now() < until - TOLERANCE:
                if self._ending:
                    return
                yield self.cycle()
                done += 1
        finally:
            self.steering.end()
            self.health.end()

    def interrupt(self) -> None:
        """Begin no more cycles, and end this one now. A signal handler may call it."""
        self._interrupted = True
        self.engine.clock.wake()

    @property
    def _ending(self) -> bool:
        return self._interrupted or self.steering.settings.stopping

    def cycle(self) -> Cycle:
        """Wait for the end of the interval, then decide on the next one."""
        done = self._attempt()
        failure = done.note if done.outcome is Outcome.FAILED else ""
        self.health.take(self.monitor.past if done.stats else (), failure)
        if done.stats:
            self._count(done.stats)
        try:
            self._record(done)
        except Exception:  # A full disk must not stop the pipeline.
            log.exception("the cycle at %.0f s could not be recorded", done.time)
        return done

    def _count(self, stats: IntervalStats) -> None:
        """Log every new error on which events are set aside once; after that, only count."""
        for operator, error in self.problems.take(stats):
            log.warning("%r sets events aside: %s", operator, error)

    def _attempt(self) -> Cycle:
        stats = None
        try:
            self._wait()
            stats = self.monitor.collect()
            return self._decide(stats, self.steering.course)
        except NotReadyError as wait:
            return Cycle(self.engine.clock.now(), Outcome.SKIPPED, str(wait), stats)
        except EngineError as error:  # There is nothing left to control.
            self.health.fail(str(error))
            raise
        except Exception as error:  # The pipeline runs on as it is; the next cycle retries.
            if not self.health.failing:  # The first of a row; the others are counted.
                log.exception("a cycle of the control loop failed")
            return Cycle(self.engine.clock.now(), Outcome.FAILED, described(error), stats)

    def _wait(self) -> None:
        """Until the interval or the run ends; what people set by hand takes effect meanwhile."""
        ended = False
        while not ended:
            health = self.health()
            if health.state is State.FAILED:
                raise EngineError(health.why)
            settings = self.steering.settings
            self.executor.set_by_hand(settings.by_hand)
            ended = self._ending or self.monitor.wait(settings.td, self._until)

    def _decide(self, stats: IntervalStats, course: Course) -> Cycle:
        now, settings = self.engine.clock.now(), course.settings
        if self._ending:
            return Cycle(now, Outcome.SKIPPED, "the run ends", stats)
        context = self.analyzer.analyze(
            self.monitor.past,
            self.monitor.sampled,
            course,
            tuple(self.planner.proposals),
            now,
        )
        proposal, plan = self.planner.plan(context, course)
        changes = self.executor.execute(plan, context.active, settings.advice_only, stats.executors)
        if not settings.advice_only:
            self.analyzer.lead_times.ask(plan.replicas, stats, now)
        advised = settings.advice_only and changes
        return Cycle(
            time=now,
            outcome=Outcome.ADVISED
            if advised
            else Outcome.CHANGED
            if changes
            else Outcome.UNCHANGED,
            note=_note(context.forecast, settings),
            stats=stats,
            forecast=context.forecast,
            proposal=proposal,
            plan=plan,
            changes=changes,
        )


def _numbers(changes: Sequence[Change]) -> list[tuple[str, int, int]]:
    """Changes without their reasons, in which something is different every time."""
    return [(change.operator, change.before, change.after) for change in changes]


def _note(forecast: Forecast | None, settings: Settings) -> str:
    notes = ["paused"] if settings.paused else []
    if forecast and forecast.fallback:
        notes.append(forecast.fallback)
    return "; ".join(notes)
