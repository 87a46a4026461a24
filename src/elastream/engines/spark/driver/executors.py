"""The executors of a pipeline: emptied before they are released, so that nobody notices.

Workers never end, so that Spark would never take an executor for idle. One that is to go is cleared
by the placement first: other workers get ready in the roles that matter there, and its replicas
hand over their lanes. When that is done, Spark starts no more tasks on it; tasks of other queries
end in their own time; and then it goes with the workers that have nothing to do. Spark lets those
wait until an executor comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from pyspark.sql import SparkSession

from elastream.core.health import RUNNING, Health, State
from elastream.core.stats import ExecutorStats
from elastream.engines.executors.base import Executor
from elastream.engines.executors.claims import Claim
from elastream.engines.executors.fleet import Fleet
from elastream.engines.executors.spark import DRIVER, SparkCluster
from elastream.engines.spark.driver.placement import Occupation, Placement
from elastream.engines.spark.driver.worker_places import Places
from elastream.errors import InvalidInputError

Limits = tuple[int, int]
"""The fewest and the most executors."""
IDLE_LOOKS = 4
"""How many looks in a row must find an executor empty: heartbeats tell of work some time later."""
CLOSED_LOOKS = 2
"""How many looks later those see every task that began before an executor was closed."""
PIPELINE = "pipeline"


class PipelineExecutors:
    """The executors that a pipeline runs on: counted, and scaled if there are limits.

    Args:
        session: Whose executors they are.
        placement: Where replicas are.
        beside: How many task slots sources and DataFrames take.
        least_slots: How many the pipeline needs at least.
        limits: How few and how many there may be; without, their number is fixed.
        fitted: Whether no worker may wait for a slot: see `EmptiedFirst`.
    """

    def __init__(
        self,
        session: SparkSession,
        placement: Placement,
        beside: int,
        least_slots: int,
        limits: Limits | None,
        fitted: bool,
    ) -> None:
        cluster = SparkCluster(session, read_only=limits is None)
        listed = cluster.list()
        self._slots = min((each.cores for each in listed), default=1)
        self._present = len(listed)
        self._beside, self._limits = beside, limits
        self._wanted = 0
        self._claim: Claim | None = None
        self._fleet: Fleet | None = None
        self._emptied = EmptiedFirst(cluster, placement.clear, placement.occupation, fitted)
        if limits is not None:
            check_room(limits, self._slots, least_slots)
            self._claim = Claim(cluster.application, "a pipeline")
            self._fleet = Fleet(self._emptied, *limits)
            self.want(self._present)
            self._fleet.start()

    @property
    def closed_slots(self) -> int:
        """How many task slots are of executors that are to go."""
        return self._emptied.closed_slots

    def note(self, places: Places) -> None:
        """See how many there are."""
        self._present = len(places.alive - self._emptied.ended - {DRIVER})

    def want(self, count: int) -> None:
        """Have this many in total, sooner or later."""
        if self._fleet is None:
            raise InvalidInputError("the number of executors is fixed: give executors=(1, 8)")
        self._wanted = self._fleet.bounded(count)
        self._fleet.want(PIPELINE, self._wanted)

    def stats(self, duration: float) -> ExecutorStats:
        """What there is to know about them in an interval that ends now."""
        fleet = self._fleet
        return ExecutorStats(
            present=self._present,
            seconds=self._present * duration,
            slots=self._slots,
            beside=self._beside,
            wanted=self._wanted,
            lead=fleet.lead_time if fleet else 0.0,
            limits=self._limits,
        )

    def health(self) -> Health:
        """What keeps them from coming or going."""
        problem = self._fleet.problem if self._fleet else ""
        return Health(State.DEGRADED, problem) if problem else RUNNING

    def close(self) -> None:
        """Leave them as they are."""
        if self._fleet:
            self._fleet.forget(PIPELINE)
            self._fleet.close()
        if self._claim:
            self._claim.end()


def check_room(limits: Limits, slots: int, needed: int) -> None:
    """An error if even the most executors have too few task slots."""
    if limits[1] * slots < needed:
        raise InvalidInputError(
            f"executors={limits} with {slots} task slots each: sources, minima and DataFrames need "
            f"{needed} slots, so allow {-(-needed // slots)} executors or more, or give each more "
            "slots with spark.executor.cores"
        )


class ReleasableCluster(Protocol):
    """What Spark's cluster can do, beyond the port of a fleet."""

    def list(self) -> Sequence[Executor]:
        """The executors that take tasks now."""

    def ask(self, total: int) -> None:
        """Keep this many in total."""

    def holds_shuffle_files(self, name: str) -> bool:
        """Whether an executor has shuffle files that somebody may still read."""

    def close_to_tasks(self, names: Sequence[str]) -> None:
        """Let no task begin there any more; there is no way back."""

    def end(self, names: Sequence[str]) -> None:
        """End these, with all that runs there."""


class EmptiedFirst:
    """A cluster whose executors a pipeline leaves before they go.

    Args:
        cluster: Where they come from.
        clear: Called with the executors that the pipeline should use as little as possible.
        occupation: What executors do for the pipeline.
        fitted: Whether no worker may wait for a slot, because it would take those of DataFrames:
            then an executor goes only when a generation without its workers has taken over.
    """

    def __init__(
        self,
        cluster: ReleasableCluster,
        clear: Callable[[Sequence[str]], object],
        occupation: Callable[[], Occupation],
        fitted: bool = False,
    ) -> None:
        self._cluster = cluster
        self._clear = clear
        self._occupation = occupation
        self._fitted = fitted
        self._leaving: dict[str, int] = {}
        """Those that are to go, and how many looks in a row have found each empty."""
        self._closed: dict[str, int] = {}
        """Those where no task begins any more, and how many looks ago that was."""
        self.closed_slots = 0
        """How many task slots those have."""
        self.ended: frozenset[str] = frozenset()
        """Those that were told to end; a standalone cluster lists them for 5 s more."""

    def list(self) -> Sequence[Executor]:
        """The executors; those that the pipeline needs least are the least busy ones."""
        occupation, listed = self._occupation(), self._cluster.list()
        self._end_closed(listed, occupation)
        return [self._as_needed(each, occupation) for each in listed]

    def ask(self, total: int) -> None:
        """Ask the cluster."""
        self._cluster.ask(total)

    def release(self, names: Sequence[str]) -> frozenset[str]:
        """Empty these; those that are empty go."""
        self._clear([*names, *self._closed])
        occupation = self._occupation()
        self._leaving = {
            name: 0 if occupation.needed.get(name) else self._leaving.get(name, -1) + 1
            for name in names
        }
        gone = frozenset(
            name
            for name, looks in self._leaving.items()
            if (looks >= IDLE_LOOKS or self._fitted) and not self._cluster.holds_shuffle_files(name)
        )
        self._cluster.close_to_tasks(sorted(gone))
        self._closed |= dict.fromkeys(gone, 0)
        self._leaving = {name: of for name, of in self._leaving.items() if name not in gone}
        return gone

    def _as_needed(self, executor: Executor, occupation: Occupation) -> Executor:
        """Those that are being emptied go before all others."""
        leaving = executor.name in self._leaving or executor.name in self._closed
        return replace(
            executor,
            running=-1 if leaving else _busy(executor, occupation),
            works=executor.name in occupation.joined,
        )

    def _end_closed(self, listed: Sequence[Executor], occupation: Occupation) -> None:
        """End those that do nothing for anybody else any more."""
        closed = [each for each in listed if each.name in self._closed]
        self._closed = {each.name: self._closed[each.name] + 1 for each in closed}
        self.closed_slots = sum(each.cores for each in closed)
        idle = [
            each.name
            for each in closed
            if self._closed[each.name] >= CLOSED_LOOKS
            and not (each.running if self._fitted else _foreign(each, occupation))
        ]
        if idle:
            self._cluster.end(idle)
            self.ended |= frozenset(idle)


def _foreign(executor: Executor, occupation: Occupation) -> int:
    """How many tasks it runs that are not the pipeline's."""
    return max(executor.running - occupation.workers.get(executor.name, 0), 0)


def _busy(executor: Executor, occupation: Occupation) -> int:
    return occupation.needed.get(executor.name, 0) + _foreign(executor, occupation)
