"""The Spark engine: real events through real Spark tasks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from elastream.core.decision import Plan
from elastream.core.groupings.base import Utilization
from elastream.core.stats import IntervalStats
from elastream.core.topology import Topology
from elastream.engines.spark.deployment import Deployment
from elastream.engines.spark.generations import Generations
from elastream.engines.spark.measuring import Sampler, interval_stats
from elastream.engines.spark.session import check_slots, local_session
from elastream.engines.spark.source import Source
from elastream.engines.spark.transport.base import ActivePlan, Totals
from elastream.engines.spark.transport.sqlite import SqliteTransport
from elastream.errors import InvalidInputError

EPOCH_SECONDS = 600.0
START_SECONDS = 120.0
DRAIN_LOOK_SECONDS = 0.05
SPARE_SLOTS = 2
"""For other queries of the same session."""


class WallClock:
    """Real time, from when the engine started."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def sleep_until(self, moment: float) -> None:
        """Sleep."""
        time.sleep(max(moment - self.now(), 0.0))


class SparkEngine:
    """Runs a topology as long-lived Spark tasks, with the queues in a state folder.

    Args:
        topology: The pipeline.
        sources: Where the events of each source come from.
        folder: The state folder. A folder that a run has left is gone on with.
        session: The user's own, or None for one on this machine.
        queue_size: How many events may wait for an operator before its producers wait.
        sample: The length of a sampling window of the input, in seconds.
    """

    def __init__(
        self,
        topology: Topology,
        sources: Mapping[str, Source],
        folder: Path,
        session: SparkSession | None = None,
        *,
        queue_size: int = 100_000,
        sample: float = 1.0,
        epoch: float = EPOCH_SECONDS,
    ) -> None:
        missing = {source.name for source in topology.sources} - sources.keys()
        if missing:
            raise InvalidInputError(f"{topology}: nothing feeds the source {min(missing)!r}")
        self.topology = topology
        deployment = Deployment(topology, dict(sources), queue_size)
        # Two generations run side by side while one takes over from the other.
        needed = 2 * len(deployment.members) + SPARE_SLOTS
        self.session = session or local_session(needed)
        check_slots(self.session, needed)
        self._active = {op.name: tuple(range(op.minimum)) for op in topology.operators}
        self._utilization: dict[str, Utilization] = {}
        self._interval = 0
        with ExitStack() as undo:
            self._transport = SqliteTransport(folder)
            undo.callback(self._transport.close)
            self._transport.claim(_shape(topology))
            deployment.save(folder)
            self._publish()
            before = self._transport.totals()
            self._generations = Generations(self.session, folder, set(deployment.members), epoch)
            undo.callback(self._generations.close)
            self._generations.wait_until_ready(START_SECONDS)
            self._sampler = Sampler(folder, tuple(sources), sample)
            undo.callback(self._sampler.close)
            self._close = undo.pop_all()
        self.clock = WallClock()
        # What replicas did while the others still started belongs to the first interval.
        self._before: tuple[float, Totals] = (self.clock.now(), before)
        self._closed = False

    def observe(self) -> IntervalStats:
        """What the replicas counted since the last call."""
        self._check_open()
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

    def drain(self, seconds: float) -> bool:
        """Let nothing more in, and wait for what is inside; whether all of it got through."""
        self._check_open()
        self._transport.dismiss([(source.name, 0) for source in self.topology.sources])
        deadline = self.clock.now() + seconds
        while any(self._transport.waiting(name) for name in self.topology.by_name):
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
