"""Executors through Spark's own scheduler: standalone, YARN and Kubernetes alike.

This is the one place that calls the scheduler in the JVM: Spark offers `requestTotalExecutors` and
`killExecutors` to developers in Scala and Java, and PySpark has no name for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from elastream.engines.executors.base import Executor
from elastream.engines.executors.status import StatusStore
from elastream.errors import EngineError, InvalidInputError

DRIVER = "driver"


class SparkCluster:
    """The executors of a session's application.

    Args:
        session: A session of the application.
        read_only: Whether they are only to be listed; otherwise, a session whose executors cannot
            be scaled is refused.
        quiet: Whether nobody will read what was shuffled so far. Unless given, nobody does while no
            job has several stages.
    """

    def __init__(
        self,
        session: SparkSession,
        read_only: bool = False,
        quiet: Callable[[], bool] | None = None,
    ) -> None:
        self._context = session.sparkContext
        if not read_only:
            self.check_scalable()
        # PySpark has no public way to the scheduler.
        self._scala: Any = self._context._jsc.sc()
        self._jvm: Any = self._context._jvm
        self._quiet = quiet or self._no_job_has_stages
        self._cores_per_task = cores_per_task(self._context)
        self._shuffled: frozenset[str] = frozenset()

    @cached_property
    def _status(self) -> StatusStore:
        return StatusStore(self._context)

    @cached_property
    def _is_local(self) -> bool:
        return bool(self._scala.isLocal())

    @property
    def application(self) -> str:
        """The identifier of the application that they work for."""
        return str(self._context.applicationId)

    @property
    def ended(self) -> bool:
        """Whether the session has ended, and its executors with it."""
        try:
            return bool(self._scala.isStopped())
        except Exception:  # So has its JVM.
            return True

    def check_scalable(self) -> None:
        """Raise what has to be set first, if they cannot be scaled."""
        _check_scalable(self._context)

    def list(self) -> Sequence[Executor]:
        """The executors that Spark knows; in local mode only the driver, with all cores."""
        if self._is_local:
            slots = max(self._context.defaultParallelism // self._cores_per_task, 1)
            return [Executor(DRIVER, slots)]
        told = [_executor(each, self._cores_per_task) for each in self._status.executors()]
        found = [executor for executor in told if executor.name != DRIVER and executor.cores]
        self._shuffled = frozenset(executor.name for executor in found if executor.shuffled)
        return found

    def ask(self, total: int) -> None:
        """Set the total: the cluster manager provides that many, and replaces those that die.

        A session that has ended needs none.
        """
        no_hosts = self._jvm.PythonUtils.toScalaMap({})
        if not self._scala.requestTotalExecutors(total, 0, no_hosts) and not self.ended:
            raise EngineError(
                f"the cluster manager rejected the request for {total} executors: "
                "look at the driver's log"
            )

    def release(self, names: Sequence[str]) -> frozenset[str]:
        """Release those that run nothing and hold no shuffle files that might still be read.

        Spark's scheduler checks under its own lock that they are idle and gives them no task any
        more, so that no task fails. Shuffle files go with the executor, unless a service keeps
        them: so one that has ever written any stays until nobody reads them.
        """
        free = [name for name in names if name not in self._shuffled]
        if len(free) < len(names) and (self._keeps_shuffle_files or self._quiet()):
            free = [*names]
        if not free:
            return frozenset()
        ids = self._jvm.PythonUtils.toSeq(free)
        adjust_total, count_failures, force = False, False, False
        gone = self._scala.schedulerBackend().killExecutors(
            ids, adjust_total, count_failures, force
        )
        return frozenset(str(gone.apply(place)) for place in range(gone.size()))

    def close_to_tasks(self, names: Sequence[str]) -> None:
        """Let no task begin there any more; there is no way back."""
        info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "it is not needed any more", self._jvm.scala.Option.empty()
        )
        backend = self._scala.schedulerBackend()
        for name in names:
            adjust_total, asked_for_itself = False, False
            backend.decommissionExecutor(name, info, adjust_total, asked_for_itself)

    def end(self, names: Sequence[str]) -> None:
        """End these with all that runs there; Spark does not count such tasks as failed."""
        adjust_total, count_failures, force = False, False, True
        ids = self._jvm.PythonUtils.toSeq(list(names))
        self._scala.schedulerBackend().killExecutors(ids, adjust_total, count_failures, force)

    def holds_shuffle_files(self, name: str) -> bool:
        """Whether an executor has shuffle files that somebody may still read."""
        return name in self._shuffled and not self._keeps_shuffle_files and not self._quiet()

    @cached_property
    def _keeps_shuffle_files(self) -> bool:
        """Whether a service keeps shuffle files when their executor goes."""
        return self._context.getConf().get("spark.shuffle.service.enabled", "false") == "true"

    def _no_job_has_stages(self) -> bool:
        return all(len(job["stageIds"]) < 2 for job in self._status.running_jobs())


def allocates_dynamically(context: SparkContext) -> bool:
    """Whether Spark itself decides how many executors there are."""
    return context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"


def cores_per_task(context: SparkContext) -> int:
    """How many of an executor's cores one task takes."""
    return int(context.getConf().get("spark.task.cpus", "1"))


def _check_scalable(context: Any) -> None:
    conf, master = context.getConf(), str(context.master)
    if context._jsc.sc().isLocal():
        raise InvalidInputError(
            f"master {master!r} is local mode, which has no executors: use a cluster "
            "(spark://..., yarn, k8s://...), or local-cluster[8,1,1024] to try it"
        )
    if allocates_dynamically(context):
        raise InvalidInputError(
            "spark.dynamicAllocation.enabled is true, so two controllers would fight over the same "
            "executors: set it to false"
        )
    if master.startswith("spark:") and conf.get("spark.executor.cores") is None:
        raise InvalidInputError(
            "without spark.executor.cores, an executor of a standalone cluster takes all cores of "
            "a worker: set it, for instance to 1"
        )


def _executor(summary: Mapping[str, Any], per_task: int) -> Executor:
    return Executor(
        name=str(summary["id"]),
        cores=int(summary["totalCores"]) // per_task,
        running=int(summary["activeTasks"]),
        blocks=int(summary["rddBlocks"]),
        since=summary["addTime"] / 1000,
        shuffled=int(summary["totalShuffleWrite"]),
        new=not summary["totalTasks"],
    )
