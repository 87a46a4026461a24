"""A look at a running query, from outside.

Progress comes through a listener, and tasks through the status tracker. The trigger interval, the
offsets of the batch at work and the files that wait are not public: Spark tells of a batch only
when it has ended, and one that is too large would be known too late. They are read here and in
`files`, and nowhere else, and read as None if Spark has changed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.engines.attached.files import LimitedFiles, limited_files
from elastream.engines.attached.gaps import batch_of
from elastream.engines.attached.progress import position
from elastream.engines.attached.record import NO_WORK, Work
from elastream.engines.executors.status import StatusStore
from elastream.errors import InvalidInputError

WITHOUT_BATCHES = {"ContinuousTrigger": "continuous", "RealTimeTrigger": "real-time"}


def session_of(query: Any) -> SparkSession:
    """The session of a query that can be attached to."""
    if not all(hasattr(query, name) for name in ("id", "runId", "isActive")):
        raise InvalidInputError(
            f"attach: a {type(query).__name__} is not a streaming query: give what "
            "writeStream.start() returns"
        )
    if not hasattr(query, "_jsq"):
        raise InvalidInputError(
            "attach: this is a query of Spark Connect, whose client cannot reach Spark's "
            "scheduler: attach in the program of the driver, with a session made by "
            "SparkSession.builder.master(...)"
        )
    if not query.isActive:
        raise InvalidInputError("attach: the query is not running: start it first")
    # The one of a thread is not always the one of a query, and PySpark does not tell the latter.
    return SparkSession(SparkContext.getOrCreate(), query._jsq.sparkSession())


def queries_of_this_program() -> dict[tuple[str, str], StreamingQuery]:
    """All streaming queries that run in this process, by their application and identifier."""
    context = SparkContext._active_spark_context
    if context is None:
        return {}
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        return {}
    application = str(context.applicationId)
    return {(application, str(query.id)): query for query in _of_all_sessions(session)}


def _of_all_sessions(session: Any) -> list[StreamingQuery]:
    """Those that were started from `newSession()`, too: PySpark lists those of one session."""
    try:
        running = session._jsparkSession.sharedState().activeStreamingQueries()
        # One that has just ended is None, here or in its session.
        executions = [one for one in running.values() if one is not None]
        found = [one.sparkSession().streams().get(one.id()) for one in executions]
    except Exception:  # Spark has changed.
        return list(session.streams.active)
    return [StreamingQuery(query) for query in found if query is not None]


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a query's jobs: what it keeps executors busy with."""

    running: int
    waiting: int


class QueryView:
    """What can be seen of one query, even after a restart."""

    _files: list[LimitedFiles] | None

    def __init__(self, session: SparkSession, query: StreamingQuery) -> None:
        self._session = session
        self._follow(query)
        self._status = StatusStore(session.sparkContext)
        # Of the batch that is at work now, earlier jobs are missing; its progress is not used.
        self._newest_job = self._status.jobs_started() - 1
        self._work: dict[int, Work] = {}
        self.id = str(query.id)

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""
        return self._query.name

    @property
    def running(self) -> bool:
        """Whether it is running; one that was restarted from the same checkpoint counts."""
        if self._query.isActive:
            return True
        for query in self._session.streams.active:
            if str(query.id) == self.id:
                self._follow(query)
                return True
        return False

    @property
    def trigger_seconds(self) -> float:
        """The trigger interval; 0 when there is none. Queries without batches are refused."""
        try:
            trigger = self._execution.trigger()
            kind = str(trigger.getClass().getSimpleName())
        except Exception:
            return 0.0
        if kind in WITHOUT_BATCHES:
            raise InvalidInputError(
                f"the query has a {WITHOUT_BATCHES[kind]} trigger, whose tasks never end: only "
                "queries in batches can be scaled, with trigger(processingTime=...) or without one"
            )
        try:
            return float(trigger.intervalMs()) / 1000
        except Exception:
            return 0.0

    @property
    def position(self) -> float | None:
        """How far the sources have been read, the batch at work included, if it can be counted."""
        with suppress(Exception):
            # The text of an offset is its JSON: all of them take one call.
            told = self._execution.availableOffsets().values().mkString("[", ",", "]")
            parts = [position(offset) for offset in json.loads(told)]
            if parts and None not in parts:
                return math.fsum(part for part in parts if part is not None)
        return None

    @property
    def batches_waiting(self) -> float | None:
        """How many full batches of files wait at a source; None if no source tells."""
        with suppress(Exception):
            if self._files is None:
                sources = self._execution.sources()
                every = [sources.apply(place) for place in range(sources.size())]
                if every:  # A query that is just starting has none yet.
                    self._files = []  # If Spark has changed, this is not tried again and again.
                    self._files = limited_files(every, self._status.read)
            return max((files.batches_waiting() for files in self._files or ()), default=None)
        return None

    def tasks(self) -> Tasks:
        """At work and without a core, over all jobs of the query."""
        ours = {
            stage
            for job in self._status.running_jobs()
            if job["jobGroup"] == self._run
            for stage in job["stageIds"]
        }
        active = self._status.active_stages() if ours else ()
        stages = [one for one in active if one["stageId"] in ours and one["numActiveTasks"]]
        running = sum(stage["numActiveTasks"] for stage in stages)
        left = sum(max(stage["numTasks"] - stage["numCompleteTasks"], 0) for stage in stages)
        return Tasks(running, max(left - running, 0))

    def work_of(self, batch: int) -> Work:
        """What the tasks of a finished batch did; nothing if Spark has forgotten it."""
        with suppress(Exception):  # A session may just be ending.
            self._read_jobs()
        # Older batches that nobody asked about are no longer needed.
        self._work = {number: work for number, work in self._work.items() if number >= batch}
        return self._work.pop(batch, NO_WORK)

    def _read_jobs(self) -> None:
        """Add up the query's jobs that have ended since the last call, by their batch."""
        for number in range(self._newest_job + 1, self._status.jobs_started()):
            job = self._status.job(number)
            if job is None:
                continue
            ours = job["jobGroup"] == self._run
            if ours and job["status"] == "RUNNING":
                break
            self._newest_job = number
            batch = batch_of(job)
            if not ours or batch is None:
                continue
            stages = [self._status.stage(stage) for stage in job["stageIds"]]
            for stage in stages:
                # Of a stage whose output was there already, nothing ran.
                if stage is not None and stage["status"] != "SKIPPED":
                    self._work[batch] = self._work.get(batch, NO_WORK).with_stage(
                        int(stage["numTasks"]), stage["executorRunTime"] / 1000
                    )

    def _follow(self, query: StreamingQuery) -> None:
        """From now on, look at this run of it; what stays as it is in a run is asked once."""
        jvm_query: Any = query._jsq
        execution: Any = None
        with suppress(Exception):
            # A query from Python is a wrapper in the JVM that hides the one that runs.
            execution = jvm_query.streamingQuery()
        self._query, self._run, self._execution = query, str(query.runId), execution
        self._files = None


class Listener:
    """Passes on what Spark reports about one query, and does nothing else in Spark's thread.

    PySpark's `StreamingQueryListener` first reads every field of an event, each with calls to the
    JVM: some 450 for every batch of a small query. This one is called by the JVM itself.
    """

    def __init__(self, query: str, told: Callable[[str], None]) -> None:
        self._id = query
        self._told = told

    @cached_property
    def _jlistener(self) -> Any:
        """What PySpark's `addListener` and `removeListener` ask for."""
        jvm: Any = SparkContext._jvm
        return jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(self)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Of no interest: the first batch tells."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch has ended."""
        progress = event.progress()
        if progress.id().toString() == self._id:
            self._told(progress.json())

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """There was nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """It may be started again."""

    class Java:
        """What Py4J has to know."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
