"""Executors through Spark's own scheduler: standalone, YARN and Kubernetes alike.

This is the one place that calls the scheduler in the JVM: Spark offers `requestTotalExecutors` and
`killExecutors` to developers in Scala and Java, and PySpark has no name for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from elastream.engines.executors.base import Executor
from elastream.errors import EngineError, InvalidInputError

DRIVER = "driver"
ADVICE = "or attach with advice_only=True, which records plans and changes nothing"


class SparkCluster:
    """The executors of a session's application."""

    def __init__(self, session: SparkSession, read_only: bool = False) -> None:
        """Refuse a session whose executors cannot be scaled, unless they are only to be listed."""
        self._context = session.sparkContext
        if not read_only:
            _check_scalable(self._context)
        # PySpark has no public way to the scheduler.
        self._scala: Any = self._context._jsc.sc()
        self._jvm: Any = self._context._jvm

    @property
    def application(self) -> str:
        """The identifier of the application that they work for."""
        return str(self._context.applicationId)

    def list(self) -> Sequence[Executor]:
        """The executors that Spark knows; in local mode only the driver, with all cores."""
        summaries = self._scala.statusStore().executorList(True)
        found = [_executor(summaries.apply(place)) for place in range(summaries.size())]
        if self._scala.isLocal():
            return [Executor(DRIVER, self._context.defaultParallelism)]
        return [executor for executor in found if executor.name != DRIVER and executor.cores]

    def ask(self, total: int) -> None:
        """Set the total: the cluster manager provides that many, and replaces those that die."""
        no_hosts = self._jvm.PythonUtils.toScalaMap({})
        if not self._scala.requestTotalExecutors(total, 0, no_hosts):
            raise EngineError(
                f"the cluster manager rejected the request for {total} executors: "
                "look at the driver's log"
            )

    def release(self, names: Sequence[str]) -> frozenset[str]:
        """Release those that run nothing, and none while a job could lose its shuffle files.

        Spark's scheduler checks under its own lock that they are idle and gives them no task any
        more, so that no task fails. What a job with several stages has shuffled, it may still read;
        between the batches of a query nobody does.
        """
        if self._shuffling():
            return frozenset()
        ids = self._jvm.PythonUtils.toSeq([*names])
        adjust_total, count_failures, force = False, False, False
        gone = self._scala.schedulerBackend().killExecutors(
            ids, adjust_total, count_failures, force
        )
        return frozenset(str(gone.apply(place)) for place in range(gone.size()))

    def _shuffling(self) -> bool:
        """Whether a job has more than one stage, and no service keeps its shuffle files."""
        if self._context.getConf().get("spark.shuffle.service.enabled", "false") == "true":
            return False
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
        return any(job is not None and len(job.stageIds) > 1 for job in jobs)


def _check_scalable(context: Any) -> None:
    conf, master = context.getConf(), str(context.master)
    if context._jsc.sc().isLocal():
        raise InvalidInputError(
            f"attach: master {master!r} is local mode, which has no executors: use a cluster "
            f"(spark://..., yarn, k8s://...), local-cluster[8,1,1024] to try it, {ADVICE}"
        )
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        raise InvalidInputError(
            "attach: spark.dynamicAllocation.enabled is true, so two controllers would fight over "
            f"the same executors: set it to false, {ADVICE}"
        )
    if master.startswith("spark:") and conf.get("spark.executor.cores") is None:
        raise InvalidInputError(
            "attach: without spark.executor.cores, an executor of a standalone cluster takes all "
            f"cores of a worker: set it, for instance to 1, {ADVICE}"
        )


def _executor(summary: Any) -> Executor:
    return Executor(
        name=str(summary.id()),
        cores=int(summary.totalCores()),
        running=int(summary.activeTasks()),
        blocks=int(summary.rddBlocks()),
        since=summary.addTime().getTime() / 1000,
    )
