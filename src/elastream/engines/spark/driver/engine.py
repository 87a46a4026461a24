"""The Spark engine: real events through real Spark tasks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from elastream.core.decision import Plan
from elastream.core.health import RUNNING, Health, State, worst
from elastream.core.stats import ExecutorStats, IntervalStats
from elastream.core.topology import Topology
from elastream.engines.base import Watcher, WhenFull, one_of
from elastream.engines.clocks import WallClock
from elastream.engines.executors.spark import SparkCluster
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.base import Backend, Connection
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.ledger import Totals
from elastream.engines.spark.backends.members import Attendance, MemberName
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.dataframes.feeds import (
    DataFrameSource,
    Feeds,
    check_checkpoints,
    take_over_inbox,
)
from elastream.engines.spark.dataframes.output import Output
from elastream.engines.spark.driver import loads
from elastream.engines.spark.driver.batches import BatchFeeds, BatchSource, prepare_inbox
from elastream.engines.spark.driver.chaining import chosen_chains
from elastream.engines.spark.driver.condition import Condition, Heartbeats
from elastream.engines.spark.driver.executors import PipelineExecutors
from elastream.engines.spark.driver.generations import Generations
from elastream.engines.spark.driver.loads import LOADS_SECONDS, LoadReports
from elastream.engines.spark.driver.placement import Placement
from elastream.engines.spark.driver.preflight import (
    Slots,
    check_columns,
    check_functions,
    check_outputs,
    check_sources,
    checked_initial,
    checked_outputs,
)
from elastream.engines.spark.driver.sampler import Sampler
from elastream.engines.spark.driver.session import (
    check_slots,
    new_session,
    on_one_machine,
    prepared,
    task_slots,
)
from elastream.engines.spark.driver.statistics import Intervals
from elastream.engines.spark.driver.windows import Windows
from elastream.engines.spark.driver.worker_places import PlaceFinder, Places, PlaceWatcher
from elastream.engines.spark.options import QUEUE_SIZE, OnError, Options
from elastream.engines.spark.sources import EventSource
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.errors import EngineError, InvalidInputError

log = logging.getLogger(__name__)

GENERATION_SECONDS = 600.0
START_SECONDS = 120.0
DRAIN_LOOK_SECONDS = 0.05


class SparkEngine:
    """Runs a topology as long-lived Spark tasks.

    Args:
        topology: The pipeline. Its chains are chosen here; `engine.topology` is the effective one,
            in which a chain is one operator.
        sources: Where the events of each source come from: a trace, a streaming DataFrame, or
            batches from an iterable.
        state: Where the state lives: a folder or a URL. An existing one is resumed.
        session: The user's own, or None for that of a DataFrame, or else one on this machine.
        outputs: The operators whose output `stream` can read, and the schema of each.
        queue_size: How many events may wait for an operator.
        on_full: When more come, `"block"`: their producers wait; or `"drop"`: they are lost.
        on_error: When an operator raises, `"set-aside"`: the events that made it do so become dead
            letters, and all others continue; or `"fail"`: `observe` raises, and they stay where
            they are.
        sample: The length of a sampling window of the input, in seconds.
        initial: How many replicas operators start with; by default their minimum. Of a chain, the
            first operator counts.
        generation: How long a generation of workers lasts, in seconds.
        executors: How few and how many executors of a cluster plans may ask for; without, their
            number is not touched.
        say: Told which operators are chained, and why, before anything runs.
    """

    def __init__(
        self,
        topology: Topology,
        sources: Mapping[str, EventSource],
        state: str | Path | Backend,
        session: SparkSession | None = None,
        *,
        outputs: Mapping[str, str | StructType] | None = None,
        queue_size: int = QUEUE_SIZE,
        on_full: WhenFull | str = WhenFull.BLOCK,
        on_error: OnError | str = OnError.SET_ASIDE,
        sample: float = 1.0,
        initial: Mapping[str, int] | None = None,
        generation: float = GENERATION_SECONDS,
        executors: tuple[int, int] | None = None,
        say: Callable[[str], object] = log.info,
    ) -> None:
        check_sources(topology, sources)
        check_columns(topology, sources)
        check_outputs(topology, outputs or {})
        first = checked_initial(topology, initial or {})
        options = Options(
            queue_size,
            one_of(WhenFull, on_full, "on_full"),
            one_of(OnError, on_error, "on_error"),
        )
        frames = {name: of for name, of in sources.items() if isinstance(of, DataFrameSource)}
        traces = {name: of for name, of in sources.items() if isinstance(of, TraceSource)}
        batches = {name: of for name, of in sources.items() if isinstance(of, BatchSource)}
        given = [session] if session else [of.frame.sparkSession for of in frames.values()]
        self.backend = open_backend(state)
        check_checkpoints(
            self.backend, frames, elsewhere=any(not on_one_machine(each) for each in given)
        )
        self._fails = options.on_error is OnError.FAIL
        self._heartbeats = Heartbeats()
        self._sample = sample
        self._executors: PipelineExecutors | None = None
        with ExitStack() as undo:
            self._ownership = undo.enter_context(self.backend.own())
            self.backend.take_over()  # Which operators can be chained depends on what waits.
            self.chains = chosen_chains(topology, self.backend, say=say)
            check_functions(self.chains)
            self.topology = self.chains.topology
            slots = Slots.of(self.topology, len(frames), len(outputs or {}))
            self.session = _session(given, slots, scales=executors is not None)
            # Spark reads a schema only where there is a session.
            self._outputs = checked_outputs(topology, outputs or {})
            read = frozenset(self._outputs)
            deployment = Deployment(topology, traces, options, self.backend, read, self.chains)
            self._connection = self._prepare(undo, _shape(topology), deployment)
            for name in frames:
                take_over_inbox(self.backend, name)
            for name in batches:
                prepare_inbox(self.backend, name)
            self._generations = self._start_workers(undo, deployment, slots, generation)
            placing = undo.enter_context(self.backend.connect())
            self._placement = Placement(
                self.topology,
                deployment.layout,
                placing.board,
                placing.ledger.lanes,
                lambda members: self._heartbeats.silent(members, time.monotonic()),
                self._ownership,
            )
            if not on_one_machine(self.session):
                self._executors = self._follow_executors(undo, slots, executors)
            before = self._connection.ledger.totals()
            self._intervals = self._intervals_from(before, self._connection)
            self._placement.want({n: r for n, r in first.items() if n in self.topology.by_name})
            self.clock = WallClock()
            self._windows = self._look_after_windows(undo, before, queue_size)
            self._sampler = self._start_sampling(undo, tuple(sources))
            self._samplers = [self._sampler]
            if loads.wanted_by(topology):
                self._samplers.append(self._start_reporting(undo, before))
            self._feeds = Feeds(self.session, self.backend, frames, queue_size)
            undo.callback(self._feeds.stop)
            self._batches = BatchFeeds(self.backend, batches, queue_size)
            undo.callback(self._batches.stop)
            self._close = undo.pop_all()
        self._observed = self.clock.now()
        self._closed = False

    # Threads work at the same time, so each of those below has its own connection.

    def _prepare(self, undo: ExitStack, shape: str, deployment: Deployment) -> Connection:
        """Lay out the state."""
        self.backend.prepare(shape, deployment.layout)
        undo.callback(self.backend.sweep)
        connection = undo.enter_context(self.backend.connect())
        connection.board.publish(LanePlan())  # Without active replicas: nothing moves yet.
        return connection

    def _start_workers(
        self, undo: ExitStack, deployment: Deployment, slots: Slots, seconds: float
    ) -> Generations:
        """Start the first generation, and wait until it is ready."""
        reserved = slots.needed - len(deployment.members)
        generations = Generations(
            self.session,
            deployment,
            undo.enter_context(self.backend.connect()).board,
            seconds,
            room=lambda: self._open_slots() - reserved,
            checkpoints=self.backend.local_folder,
            fitted=bool(slots.queries),
            ownership=self._ownership,
        )
        undo.callback(generations.close)
        generations.wait_until_ready(START_SECONDS)
        return generations

    def _follow_executors(
        self, undo: ExitStack, slots: Slots, limits: tuple[int, int] | None
    ) -> PipelineExecutors:
        """Know a cluster's executors, and where members are; scale them if there are limits."""
        beside = len(self.topology.sources) + slots.queries
        executors = PipelineExecutors(
            self.session,
            self._placement,
            beside,
            slots.least,
            limits,
            fitted=bool(slots.queries),
        )
        undo.callback(executors.close)

        def follow(places: Places) -> None:
            executors.note(places)
            self._placement.follow(places)

        finder = PlaceFinder(self.session, lambda: self._generations.running)
        undo.callback(PlaceWatcher(finder.look, follow).close)
        return executors

    def _look_after_windows(self, undo: ExitStack, before: Totals, queue_size: int) -> Windows:
        """Review lanes, and report to watchers."""
        connection = undo.enter_context(self.backend.connect())
        intervals = self._intervals_from(before, connection)
        review = self._placement.review
        return Windows(intervals, connection.board, self._outputs, queue_size, review)

    def _intervals_from(self, before: Totals, connection: Connection) -> Intervals:
        return Intervals(
            self.chains,
            connection.dead_letters,
            before,
            self._condition,
            self._executor_stats,
            self._sample,
        )

    def _start_sampling(self, undo: ExitStack, sources: tuple[str, ...]) -> Sampler:
        """Count what arrives at sources in every window."""
        connection = undo.enter_context(self.backend.connect())
        sampler = Sampler(connection, sources, self._sample, [self._windows.ended])
        undo.callback(sampler.close)
        return sampler

    def _start_reporting(self, undo: ExitStack, before: Totals) -> Sampler:
        """Let groupings know how loaded replicas are, often enough."""
        connection = undo.enter_context(self.backend.connect())
        reports = LoadReports(self.chains, connection.board, before, self._condition)
        often = min(self._sample, LOADS_SECONDS)
        sampler = Sampler(connection, (), often, [reports.post])
        undo.callback(sampler.close)
        return sampler

    def observe(self) -> IntervalStats:
        """What members counted since the last call; an error if the pipeline cannot continue."""
        self._check_open()
        self._feeds.check()
        self._batches.check()
        self._check_members()
        now, totals = self.clock.now(), self._connection.ledger.totals()
        members = self._connection.board.members()
        then, self._observed = self._observed, now
        samples, since = self._sampler.take()
        return replace(self._intervals.next(now - then, totals, samples, members), open=since)

    def apply(self, plan: Plan) -> None:
        """Publish the plan: replicas and producers follow it within a fraction of a second."""
        self._check_plan(plan)
        self._placement.want(plan.replicas)
        if plan.executors is not None and self._executors:
            self._executors.want(plan.executors)

    def watch(self, watcher: Watcher) -> None:
        """From now on, tell the watcher what members counted in every sampling window."""
        self._windows.watch(watcher)

    def health(self) -> Health:
        """The health of the workers, and whether the backend can write."""
        if self._closed:
            return RUNNING
        others = [sampler.health() for sampler in self._samplers]
        if self._executors:
            others.append(self._executors.health())
        return worst(self._generations.health(), *others, *self._windows.health())

    @property
    def batches_ended(self) -> bool:
        """Whether every source that takes batches from an iterable has come to its end."""
        return self._batches.ended

    def stream(self, operator: str) -> DataFrame:
        """An operator's output as a streaming DataFrame, for one query."""
        self._check_open()
        if operator not in self._outputs:
            raise InvalidInputError(
                f"the output of {operator!r} is not kept: name it and its schema in outputs={{...}}"
            )
        self.session.dataSource.register(Output)
        return (
            self.session.readStream.format(Output.name())
            .option("state", self.backend.url)
            .option("operator", operator)
            .schema(self._outputs[operator])
            .load()
        )

    def drain(self, seconds: float) -> bool:
        """Let no more events in, and wait for those inside; returns whether all are finished.

        What waits to be read as a DataFrame is still inside. Nothing is let in again. An error if
        the pipeline cannot continue: then what is inside would wait for ever.
        """
        self._check_open()
        self._feeds.stop()
        self._batches.stop()
        self._placement.close_sources()
        nodes = [*self.chains.declared.order, *(output_of(name) for name in self._outputs)]
        deadline = self.clock.now() + seconds
        while any(map(self._connection.ledger.totals().waiting, nodes)):
            self._check_members()
            if self.clock.now() > deadline:
                return False
            time.sleep(DRAIN_LOOK_SECONDS)
        return True

    def close(self) -> None:
        """Stop all workers; waiting events stay in the state."""
        if self._closed:
            return
        self._closed = True
        self._close.close()

    def _open_slots(self) -> int:
        """How many task slots there are, without those of executors that are to go."""
        closed = self._executors.closed_slots if self._executors else 0
        return task_slots(self.session) - closed

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError("the engine is closed: start a new one")

    def _check_plan(self, plan: Plan) -> None:
        self._check_open()
        for name in plan.replicas:
            if name in self.chains.chained:
                head = self.chains.head(name)
                raise InvalidInputError(
                    f"{name!r} shares the replicas of {head!r}: scale that one instead"
                )
        self.topology.check_replicas(plan.replicas)

    def _check_members(self) -> None:
        health = self._generations.health()
        if health.state is State.FAILED:
            raise EngineError(health.why)
        for (name, _), error in self._connection.board.failures().items():
            if name not in self.chains.declared.by_name:
                raise EngineError(f"the source {name!r} failed: {error}; its events wait")
            if self._fails:
                raise EngineError(f"the operator {name!r} failed: {error}; its events wait")

    def _condition(self, members: Mapping[MemberName, Attendance]) -> Condition:
        silent = self._heartbeats.silent(members, time.monotonic())
        return Condition(self._placement.plan, self._placement.wanted, members, silent)

    def _executor_stats(self, duration: float) -> ExecutorStats | None:
        return self._executors.stats(duration) if self._executors else None


def _session(given: Sequence[SparkSession], slots: Slots, scales: bool) -> SparkSession:
    """The user's session, made ready, or a new one; an error if it cannot run the pipeline."""
    if given:
        session = prepared(given[0])
    else:
        session = new_session(slots.enough, needed=slots.needed, least=slots.least)
    if scales:
        SparkCluster(session)  # Refuses a session whose executors cannot be scaled.
    check_slots(session, slots.needed, slots.least)
    return session


def _shape(topology: Topology) -> str:
    """What must be the same for a run to resume a state: names and edges."""
    edges = ", ".join(sorted(f"{edge}" for edge in topology.edges))
    return f"{topology.name}: {edges}"
