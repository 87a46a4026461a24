"""What Spark's status store knows, each thing in one or two calls to the JVM.

A call from Python to the JVM takes a fraction of a millisecond, and an object has a call per field.
So whole answers are read as JSON, by the library that Spark's own REST interface uses.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark import SparkContext


class StatusStore:
    """The executors, jobs and stages of an application, with the fields of Spark's REST API."""

    def __init__(self, context: SparkContext) -> None:
        # PySpark has no public way to the store, to the scheduler or to Jackson.
        jvm: Any = context._jvm
        self._scala: Any = context._jsc.sc()
        self._store: Any = self._scala.statusStore()
        self._tracker: Any = context.statusTracker()._jtracker
        jackson = jvm.com.fasterxml.jackson
        self._mapper = jackson.databind.ObjectMapper()
        self._mapper.registerModule(jackson.module.scala.DefaultScalaModule())
        self._running = jvm.java.util.ArrayList()
        self._running.add(jvm.org.apache.spark.JobExecutionStatus.RUNNING)

    def executors(self) -> list[dict[str, Any]]:
        """Those that are alive, and the driver."""
        return list(self.read(self._store.executorList(True)))

    def running_jobs(self) -> list[dict[str, Any]]:
        """The jobs that are at work, whoever started them."""
        return list(self.read(self._store.jobsList(self._running)))

    def active_stages(self) -> list[dict[str, Any]]:
        """The stages that are at work."""
        return list(self.read(self._store.activeStages()))

    def jobs_started(self) -> int:
        """How many there have been; their numbers are below that."""
        return int(self._scala.dagScheduler().numTotalJobs())

    def job(self, number: int) -> dict[str, Any] | None:
        """One job; None if the store does not know it yet, or no longer."""
        try:
            found: dict[str, Any] = self.read(self._store.job(number))
        except Exception:
            return None
        return found

    def newest_job(self, group: str) -> int | None:
        """The number of the group's newest job that the store knows."""
        numbers = self._tracker.getJobIdsForGroup(group)
        # They are sorted, in one direction or the other.
        return max(numbers[0], numbers[len(numbers) - 1]) if len(numbers) else None

    def stage(self, number: int) -> dict[str, Any] | None:
        """The last attempt of a stage; None if the store does not know it."""
        try:
            found: dict[str, Any] = self.read(self._store.lastStageAttempt(number))
        except Exception:
            return None
        return found

    def read(self, told: Any) -> Any:
        """An object of the JVM, as JSON tells it."""
        return json.loads(self._mapper.writeValueAsString(told))
