"""The Spark engine: real events through real Spark tasks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from elastream.core.decision import Plan
from elastream.core.groupings import SHARED_QUEUE
from elastream.core.groupings.base import Utilization
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.engines.base import Watcher, WhenFull
from elastream.engines.clocks import WallClock
from elastream.engines.spark.backends.base import ActivePlan, Totals
from elastream.engines.spark.backends.outbox import output_queue
from elastream.engines.spark.backends.sqlite import SqliteTransport
from elastream.engines.spark.dataframes.feeds import Feeds, take_over_inbox
from elastream.engines.spark.dataframes.output import Output
from elastream.engines.spark.dataframes.source import DataFrameSource
from elastream.engines.spark.driver.generations import Generations
from elastream.engines.spark.driver.preflight import (
    check_columns,
    check_sources,
    checked_outputs,
    slots_for,
)
from elastream.engines.spark.driver.session import check_slots, new_session, prepared
from elastream.engines.spark.driver.statistics import Sampler, interval_stats
from elastream.engines.spark.options import QUEUE_SIZE, Handling, OnError, one_of
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.trace_player import Source
from elastream.errors import EngineError, InvalidInputError

EPOCH_SECONDS = 600.0
START_SECONDS = 120.0
DRAIN_LOOK_SECONDS = 0.05


class SparkEngine:
    """Runs a topology as long-lived Spark tasks, with the queues in a state folder.

    Args:
        topology: The pipeline.
        sources: Where the events of each source come from: a trace, or a streaming DataFrame.
        folder: The state folder. A folder that a run has left is gone on with.
        session: The user's own, or None for that of a DataFrame, or else one on this machine.
        outputs: The operators whose output `stream` can read, and the schema of each.
        queue_size: How many events may wait for an operator.
        on_full: When more come, `"block"`: their producers wait; or `"drop"`: they are lost.
        on_error: When an operator raises, `"set-aside"`: the events that made it do so become dead
            letters, and all others go on; or `"fail"`: `observe` raises, and they stay where they
            are.
        sample: The length of a sampling window of the input, in seconds.
    """

    def __init__(
        self,
        topology: Topology,
        sources: Mapping[str, Source | DataFrameSource],
        folder: Path,
        session: SparkSession | None = None,
        *,
        outputs: Mapping[str, str | StructType] | None = None,
        queue_size: int = QUEUE_SIZE,
        on_full: WhenFull | str = WhenFull.BLOCK,
        on_error: OnError | str = OnError.SET_ASIDE,
        sample: float = 1.0,
        epoch: float = EPOCH_SECONDS,
    ) -> None:
        check_sources(topology, sources)
        frames = {name: of for name, of in sources.items() if isinstance(of, DataFrameSource)}
        traces = {name: of for name, of in sources.items() if isinstance(of, Source)}
        check_columns(topology, sources)
        self.topology = topology
        self._folder = folder
        queries = len(frames), len(outputs or {})
        enough, needed = slots_for(topology, *queries), slots_for(topology, *queries, generations=1)
        given = [session] if session else [of.frame.sparkSession for of in frames.values()]
        self.session = prepared(given[0]) if given else new_session(enough)
        slots = check_slots(self.session, needed)
        self._outputs = checked_outputs(topology, outputs or {})
        handling = Handling(queue_size, one_of(WhenFull, on_full), one_of(OnError, on_error))
        deployment = Deployment(topology, traces, handling, frozenset(self._outputs))
        self._fails = handling.on_error is OnError.FAIL
        self._traces = tuple(traces)
        self._active = {op.name: tuple(range(op.minimum)) for op in topology.operators}
        self._utilization: dict[str, Utilization] = {}
        self._interval = 0
        with ExitStack() as undo:
            self._transport = SqliteTransport(folder)
            undo.callback(self._transport.close)
            self._transport.claim(_shape(topology))
            self._take_over()
            for name in frames:
                take_over_inbox(folder, name)
            deployment.save(folder)
            self._generations = Generations(
                self.session, folder, set(deployment.members), epoch, overlap=slots >= enough
            )
            undo.callback(self._generations.close)
            self._generations.wait_until_ready(START_SECONDS)
            self._sampler = Sampler(folder, tuple(sources), sample)
            undo.callback(self._sampler.close)
            before = self._transport.totals()
            self._publish()
            self._feeds = Feeds(self.session, folder, frames, queue_size)
            undo.callback(self._feeds.stop)
            self._close = undo.pop_all()
        self.clock = WallClock()
        self._before: tuple[float, Totals] = (self.clock.now(), before)
        self._closed = False

    def observe(self) -> IntervalStats:
        """What replicas counted since the last call; an error when the pipeline cannot go on."""
        self._check_open()
        self._feeds.check()
        self._check_members()
        then, before = self._before
        now, after = self.clock.now(), self._transport.totals()
        active = {name: len(replicas) for name, replicas in self._active.items()}
        stats = interval_stats(
            self.topology, self._interval, now - then, before, after, active, self._sampler.take()
        )
        self._before = now, after
        self._interval += 1
        self._learn(stats)
        return stats

    def apply(self, plan: Plan) -> None:
        """Publish the plan: replicas and producers follow it within a fraction of a second."""
        self._check_open()
        for name, count in plan.replicas.items():
            pool = self.topology.by_name[name].pool
            if not 1 <= count <= pool:
                raise InvalidInputError(f"{count} replicas of {name!r}: its pool has {pool}")
        grown = [name for name, count in plan.replicas.items() if count > len(self._active[name])]
        self._active |= {name: tuple(range(count)) for name, count in plan.replicas.items()}
        self._publish()
        for name in grown:
            # Keys stay where they are; all else that waits is for the newcomers, too.
            if not self.topology.by_name[name].key:
                self._transport.share_out(name, self._active[name])

    def watch(self, watcher: Watcher) -> None:
        """From now on, tell the watcher what the replicas counted in every sampling window."""
        number, before = 0, self._transport.totals()

        def told(duration: float, after: Totals, samples: Mapping[str, tuple[float, ...]]) -> None:
            nonlocal number, before
            active = {name: len(replicas) for name, replicas in self._active.items()}
            watcher(interval_stats(self.topology, number, duration, before, after, active, samples))
            number, before = number + 1, after

        self._sampler.window_ended = told

    def stream(self, operator: str) -> DataFrame:
        """What an operator puts out, as a streaming DataFrame that one query reads."""
        self._check_open()
        if operator not in self._outputs:
            raise InvalidInputError(
                f"the output of {operator!r} is not kept: name it and its schema in outputs={{...}}"
            )
        self.session.dataSource.register(Output)
        return (
            self.session.readStream.format(Output.name())
            .option("folder", str(self._folder))
            .option("operator", operator)
            .schema(self._outputs[operator])
            .load()
        )

    def drain(self, seconds: float) -> bool:
        """Let nothing more in, and wait for what is inside; whether all of it got through.

        What waits to be read as a DataFrame is still inside.
        """
        self._check_open()
        self._feeds.stop()
        self._transport.dismiss([(name, 0) for name in self._traces])
        queues = [*self.topology.order, *(output_queue(name) for name in self._outputs)]
        deadline = self.clock.now() + seconds
        while any(self._transport.waiting(name) for name in queues):
            if self.clock.now() > deadline:
                return False
            time.sleep(DRAIN_LOOK_SECONDS)
        return True

    def close(self) -> None:
        """Stop all replicas; their queues stay in the state folder."""
        if self._closed:
            return
        self._closed = True
        self._close.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError("the engine is closed: start a new one")

    def _check_members(self) -> None:
        for (name, _), error in self._transport.failures().items():
            if name not in self.topology.by_name:
                raise EngineError(f"the source {name!r} failed: {error}; its events wait")
            if self._fails:
                raise EngineError(f"the operator {name!r} failed: {error}; its events wait")

    def _take_over(self) -> None:
        """Be the only one who acts here: a run that was killed could dismiss nobody.

        Without a plan, nothing moves before every replica is there.
        """
        self._transport.dismiss()
        self._transport.publish(ActivePlan({}))
        for name, operator in self.topology.by_name.items():
            shared = operator.router.name == "pull"
            self._transport.gather(name, [SHARED_QUEUE] if shared else range(operator.pool))

    def _learn(self, stats: IntervalStats) -> None:
        """What load-aware groupings need to know (PA-SPS equation 1)."""
        for name, operator in self.topology.by_name.items():
            busy = stats.utilization(name)
            et = stats.operators[name].execution_time
            if et is not None:
                levels = tuple(busy.get(number, 0.0) for number in range(operator.pool))
                self._utilization[name] = Utilization(levels, et / stats.duration)
        self._publish()

    def _publish(self) -> None:
        self._transport.publish(ActivePlan(dict(self._active), dict(self._utilization)))


def _shape(topology: Topology) -> str:
    """What must be the same for a run to go on in a state folder: names and edges."""
    edges = ", ".join(sorted(f"{edge}" for edge in topology.edges))
    return f"{topology.name}: {edges}"
