"""Where workers run: which executor has the task of which worker, and a thread that follows it.

Spark tells it in its status store alone, which PySpark has no name for: it is read here and nowhere
else in this engine.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.errors import BackendUnavailableError, described

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
CHANGING_LOOKS = 20
"""How many more looks go to every task after a change: Spark tells of executors and of their tasks
one after the other."""
MANY_TASKS = 1_000_000


class Places(NamedTuple):
    """Where the workers of a generation run; those that wait for a slot are nowhere."""

    generation: int
    executors: Mapping[int, str]
    """By worker."""
    alive: frozenset[str]
    """All executors, also those without workers."""


class PlaceFinder:
    """Looks where the tasks of a query are.

    Args:
        session: Where it runs.
        running: The newest generation, by number, and its query.
    """

    def __init__(
        self, session: SparkSession, running: Callable[[], tuple[int, StreamingQuery]]
    ) -> None:
        self._running = running
        self._tracker: Any = session.sparkContext.statusTracker()
        self._store: Any = session.sparkContext._jsc.sc().statusStore()
        self._known: tuple[Any, Places] | None = None
        self._looks_left = CHANGING_LOOKS

    def look(self) -> Places:
        """Where they are now. To ask for every task takes long, so that is done after changes."""
        generation, query = self._running()
        executors = self._executors()
        attempts = self._attempts(str(query.runId))
        seen = generation, executors, attempts.size() if attempts else 0
        if self._known is None or self._known[0] != seen:
            self._looks_left = CHANGING_LOOKS
        elif self._looks_left == 0:
            return self._known[1]
        self._looks_left -= 1
        places: dict[int, str] = {}
        for task in _each(attempts):
            executor = str(task.executorId())
            if executor in executors and str(task.status()) == "RUNNING":
                places[int(task.index())] = executor
        if self._running()[0] != generation:
            # Another has taken over meanwhile: that tasks of this one have ended means nothing.
            return self.look()
        self._known = seen, Places(generation, places, executors)
        return self._known[1]

    def _executors(self) -> frozenset[str]:
        return frozenset(str(one.id()) for one in _each(self._store.executorList(True)))

    def _attempts(self, group: str) -> Any:
        """All attempts of the tasks of the query's only stage; None before it has one."""
        for job in self._tracker.getJobIdsForGroup(group):
            info = self._tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                attempt = self._store.lastStageAttempt(stage).attemptId()
                return self._store.taskList(stage, attempt, MANY_TASKS)
        return None


def _each(seq: Any) -> Iterator[Any]:
    """What is in a sequence of Scala, if there is one."""
    return (seq.apply(place) for place in range(seq.size() if seq else 0))


class PlaceWatcher:
    """A thread that looks where workers are, and passes it on."""

    def __init__(self, look: Callable[[], Places], tell: Callable[[Places], None]) -> None:
        self._look, self._tell = look, tell
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker places", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self._tell(self._look())
                self._problem = ""
            except BackendUnavailableError:
                # The engine says so already; what was seen is passed on by the next look.
                continue
            except Exception as error:
                problem = f"where workers are cannot be seen now: {described(error)}"
                if problem != self._problem:
                    log.warning("%s", problem)
                self._problem = problem
