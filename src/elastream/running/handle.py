"""The handle of a pipeline that runs in the background."""

from __future__ import annotations

import atexit
import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from elastream.control import ControlLoop, Cycle, Limits, Settings
from elastream.control.history_reader import HistoryReader
from elastream.core.decision import Plan
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.engines.base import Engine
from elastream.errors import ElastreamError, EngineError, InvalidInputError, described
from elastream.policies import Policy
from elastream.predictors import Predictor
from elastream.running.interrupts import INTERRUPTS
from elastream.running.notebook import as_html, show_live
from elastream.running.status import Counted, Status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

KEPT_CYCLES = 1_000
DRAIN_SECONDS = 60.0
DRAIN_LOOK_SECONDS = 0.25
"""How soon a drain notices that it should stop at once."""
PERSON = "program"
"""Who made a change that came from `set`."""


@runtime_checkable
class Drains(Protocol):
    """An engine that can finish the events inside while it lets no more in."""

    def drain(self, seconds: float) -> bool:
        """Wait until the events inside are finished; returns whether all of them are."""


def to_stderr(message: str) -> None:
    """Write a line for the person who started the program."""
    sys.stderr.write(f"elastream: {message}\n")
    sys.stderr.flush()


@dataclass(frozen=True)
class Ending:
    """When a run ends by itself, and how."""

    until: float = inf
    """At this time of the engine's clock, in seconds."""
    fed: Callable[[], bool] | None = None
    """Asked at the end of every sampling window: whether all sources are exhausted."""
    most_set_aside: float = inf
    """This many dead letters end the run with an error."""
    drain_seconds: float = DRAIN_SECONDS
    """How long a drain may take."""


@dataclass(frozen=True)
class Surroundings:
    """Everything that belongs to a run besides its engine and its loop."""

    state: str = ""
    """Where its state lives."""
    history: Path | None = None
    url: str | None = None
    """Where its page is."""
    warm_up: float = 0.0
    """How long it took until everything was ready, in seconds."""
    sample: float = 1.0
    """The length of a sampling window, in seconds."""
    close: ExitStack = field(default_factory=ExitStack)
    """Closed when the run has ended."""
    say: Callable[[str], None] = to_stderr
    say_last: Callable[[str], None] | None = None
    """Called with the line about set-aside events; by default `say`."""


class PipelineRun:
    """A pipeline that runs in the background; `elastream.run` starts it.

    The run ends when its sources end, when you call `stop` or `drain`, on Ctrl-C, or when it fails
    (`exception`). As a context manager, it drains at the end of the block, and stops at once if the
    block raises.

    Examples:
        >>> import elastream
        >>> pipeline = elastream.Pipeline("orders")
        >>> @pipeline.operator(after=pipeline.source("orders"))
        ... def price(row: dict) -> dict:
        ...     return {"total": 19.9 * row["pieces"]}
        >>> with elastream.run(pipeline, {"orders": [[{"pieces": 3}]]}) as run:  # doctest: +SKIP
        ...     cycles = list(run.follow())
        >>> print(run.status())  # doctest: +SKIP
        orders: ended, ... s, 1 events in, 1 out, replicas price 1
    """

    def __init__(
        self,
        engine: Engine,
        loop: ControlLoop,
        ending: Ending = Ending(),  # noqa: B008 - a value that does not change
        around: Surroundings | None = None,
    ) -> None:
        self._engine = engine
        self.loop = loop
        self._ending = ending
        self._around = around or Surroundings()
        self.interrupted = False
        """Whether somebody has asked it to end."""
        self._cycles: deque[Cycle] = deque(maxlen=KEPT_CYCLES)
        self._followers: list[SimpleQueue[Cycle | None]] = []
        self._lock = Lock()
        self._windows = self._intervals = Counted()
        self._at_once = False
        self._exception: ElastreamError | None = None
        self._ended_at: float | None = None
        self._done = Event()
        self._thread = Thread(target=self._live, name=f"run {self.name}", daemon=True)
        engine.watch(self._watch)
        INTERRUPTS.watch(self)
        atexit.register(self._leave)
        self._thread.start()

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return self.topology.name

    @property
    def topology(self) -> Topology:
        """The pipeline that runs."""
        return self._engine.topology

    @property
    def state(self) -> str:
        """Where it keeps its state: pass it to `elastream.run` to resume from there."""
        return self._around.state

    @property
    def url(self) -> str | None:
        """The address of its page, if it is served."""
        return self._around.url

    @property
    def warm_up(self) -> float:
        """How long it took until everything was ready, in seconds."""
        return self._around.warm_up

    @property
    def sample(self) -> float:
        """The length of a sampling window, in seconds."""
        return self._around.sample

    @property
    def is_active(self) -> bool:
        """Whether it is still running or draining."""
        return not self._done.is_set()

    @property
    def exception(self) -> ElastreamError | None:
        """Why it failed, with the operator and the cause; None if nothing went wrong."""
        return self._exception

    @property
    def settings(self) -> Settings:
        """The current settings: policy, predictor, interval, limits and so on."""
        return self.loop.steering.settings

    def status(self) -> Status:
        """The current status; `print(run.status())` shows it in one line."""
        counted = self._windows if self.is_active else self._intervals
        newest = counted.newest or self._windows.newest
        operators = newest.operators if newest else {}
        return Status(
            name=self.name,
            health=self.loop.health(),
            active=self.is_active,
            seconds=self._engine.clock.now() if self._ended_at is None else self._ended_at,
            events_in=counted.events_in,
            events_out=counted.events_out,
            set_aside=counted.set_aside,
            waiting={name: of.queued for name, of in operators.items()},
            replicas={name: of.active for name, of in operators.items()},
            executors=newest.executors.present if newest and newest.executors else None,
            latency=newest.latency if newest else None,
        )

    def recent(self, last: int = 10) -> tuple[Cycle, ...]:
        """The last cycles of the control loop, oldest first: measurements, forecasts, decisions."""
        with self._lock:
            return tuple(self._cycles)[-last:] if last > 0 else ()

    def plan(self) -> Plan | None:
        """The newest plan, with its reasons; None before the first one."""
        with self._lock:
            plans = (cycle.plan for cycle in reversed(self._cycles) if cycle.plan)
            return next(plans, None)

    def history(self, last: int = 1_000) -> list[dict[str, Any]]:
        """The last recorded cycles, including those of earlier runs on the state, oldest first."""
        if self._around.history is None:
            raise InvalidInputError("this run records no history")
        with closing(HistoryReader(self._around.history)) as reader:
            return list(reader.cycles(last))

    def follow(self) -> Iterator[Cycle]:
        """Every cycle until the run ends, as it happens; first those that `recent` still has."""
        cycles: SimpleQueue[Cycle | None] = SimpleQueue()
        with self._lock:
            for cycle in self._cycles:
                cycles.put(cycle)
            if self._done.is_set():
                cycles.put(None)
            else:
                self._followers.append(cycles)
        try:
            with INTERRUPTS.waiting():
                while (next_one := cycles.get()) is not None:
                    yield next_one
        finally:
            # Without the lock: the garbage collector may end a forgotten loop in any thread.
            with suppress(ValueError):
                self._followers.remove(cycles)

    def set(
        self,
        *,
        policy: Policy | str | None = None,
        predictor: Predictor | str | None = None,
        td: float | None = None,
        paused: bool | None = None,
        advice_only: bool | None = None,
        replicas: Mapping[str, int | None] | None = None,
        limits: Mapping[str, tuple[int, int] | None] | None = None,
    ) -> Settings:
        """Steer the run.

        Args:
            policy: Another policy: its name, or an object such as `elastream.slo("250 ms")`.
            predictor: Another predictor: its name, or an object.
            td: The length of a control interval, in seconds.
            paused: Whether to change no replicas, except by hand.
            advice_only: Whether to record plans without applying them.
            replicas: Replicas of operators, set by hand; None hands an operator back to the policy.
            limits: Minimum and maximum replicas of operators; None restores what was declared.
        """
        steering = self.loop.steering
        given = {
            "policy": policy,
            "predictor": predictor,
            "td": td,
            "paused": paused,
            "advice_only": advice_only,
        }
        wanted = {name: value for name, value in given.items() if value is not None}
        if wanted:
            steering.change(PERSON, wanted)
        for name, of in (limits or {}).items():
            if of is None:
                steering.release_limits(PERSON, name)
            else:
                steering.limit(PERSON, name, Limits(*of))
        for name, count in (replicas or {}).items():
            if count is None:
                steering.release_replicas(PERSON, name)
            else:
                steering.set_replicas(PERSON, name, count)
        return steering.settings

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended. Ctrl-C drains it, and a second Ctrl-C stops it at once.

        Args:
            timeout: Wait for at most this many seconds.

        Returns:
            Whether it has ended.

        Raises:
            ElastreamError: The run has failed; this is its `exception`.
        """
        with INTERRUPTS.waiting():
            self._done.wait(timeout)
        if self._done.is_set():
            self._thread.join()
            if self._exception is not None:
                raise self._exception
        return self._done.is_set()

    def drain(self, timeout: float | None = None) -> bool:
        """Let no more events in, finish those inside, then stop; returns whether it has ended."""
        self.interrupt()
        return self.await_termination(timeout)

    def stop(self) -> None:
        """Stop at once. Waiting events stay in the state, and the next run continues with them."""
        self.interrupt(at_once=True)
        self._done.wait()

    def interrupt(self, at_once: bool = False) -> None:
        """Begin to drain or stop, and return at once. A signal handler may call this."""
        self.interrupted = True
        self._at_once = self._at_once or at_once
        self.loop.interrupt()

    def __getitem__(self, operator: str) -> DataFrame:
        """An operator's output as a streaming DataFrame; only one query may read it."""
        stream: Callable[[str], DataFrame] | None = getattr(self._engine, "stream", None)
        if stream is None:
            raise InvalidInputError(f"{self.topology} is simulated: it has no output to read")
        return stream(operator)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.drain()
        else:
            self.stop()

    def __repr__(self) -> str:
        return f"<PipelineRun {self.status()}>"

    def _repr_html_(self) -> str:
        return as_html(self.topology, self.status(), self.recent(KEPT_CYCLES))

    def _ipython_display_(self) -> None:
        show_live(self._repr_html_, self._done.wait)

    def _watch(self, stats: IntervalStats) -> None:
        """A sampling window has ended."""
        self._windows = counted = self._windows.after(self.topology, stats)
        ending, now = self._ending, self._engine.clock.now()
        if sum(counted.set_aside.values()) >= ending.most_set_aside or (
            ending.fed is not None and ending.fed() and now >= ending.until
        ):
            self.loop.interrupt()

    def _live(self) -> None:
        """The life of the run, on its own thread."""
        # Wait for sources that may end on their own; a trace ends by the clock alone.
        until = inf if self._ending.fed else self._ending.until
        try:
            for cycle in self.loop.run(until=until):
                self._take(cycle)
            if sum(self._windows.set_aside.values()) < self._ending.most_set_aside:
                self._drain()
        except ElastreamError as error:
            self._exception = error
        except Exception as error:
            log.exception("the run of %s has failed", self.topology)
            self._exception = EngineError(f"{self.topology} has failed: {described(error)}")
            self._exception.__cause__ = error
        finally:
            self._end()

    def _take(self, cycle: Cycle) -> None:
        if cycle.stats:
            self._intervals = self._intervals.after(self.topology, cycle.stats)
        with self._lock:
            self._cycles.append(cycle)
            for follower in tuple(self._followers):
                follower.put(cycle)

    def _drain(self) -> None:
        """Finish the events inside, unless the run is to stop at once."""
        if not isinstance(self._engine, Drains) or not self.settings.drain or self._at_once:
            return
        if self.interrupted:
            self._around.say("draining; Ctrl-C again stops at once")
        deadline = monotonic() + self._ending.drain_seconds
        while not self._engine.drain(DRAIN_LOOK_SECONDS):
            if self._at_once:
                self._around.say("stopped; waiting events stay in the state")
                return
            if monotonic() > deadline:
                self._around.say("some events still wait; they stay in the state")
                return

    def _end(self) -> None:
        with suppress(Exception):  # An engine that has failed measures nothing any more.
            last = self._engine.observe()
            self._intervals = self._intervals.after(self.topology, last)
            self.loop.problems.take(last)
        self._ended_at = self._engine.clock.now()
        try:
            with self._around.close:  # Also if the engine cannot be closed.
                self._engine.close()
        except Exception as error:
            log.exception("%s could not be closed", self.topology)
            if self._exception is None:
                self._exception = EngineError(
                    f"{self.topology} could not be closed: {described(error)}"
                )
        self._account_for_set_aside()
        atexit.unregister(self._leave)
        with self._lock:
            self._done.set()
            for follower in tuple(self._followers):
                follower.put(None)
            self._followers.clear()
        INTERRUPTS.ended()

    def _account_for_set_aside(self) -> None:
        """Say how many events failed, also in the drain; too many, or all, are an error."""
        # Where the last measurement failed, the windows may know more than the intervals.
        counted = max(self._intervals, self._windows, key=lambda of: sum(of.set_aside.values()))
        total = sum(counted.set_aside.values())
        if not total:
            return
        worst, limit = self.loop.problems.worst, self._ending.most_set_aside
        what = f"{total:,.0f} events were set aside"
        if worst:
            what += f", most by {worst.operator!r} ({worst.error})"
        where = f"see 'elastream dead-letters {self.state}'"
        if total >= limit and self._exception is None:
            self._exception = EngineError(f"{what}, and {limit:,.0f} is the limit: {where}")
        elif counted.useless and self._exception is None:
            all_of = ", ".join(map(repr, counted.useless))
            self._exception = EngineError(f"{what}, all that reached {all_of}: {where}")
        else:
            (self._around.say_last or self._around.say)(f"{what}: {where}")

    def _leave(self) -> None:
        """The program exits without having waited: leave no process behind."""
        self.interrupt(at_once=True)
        self._done.wait()
