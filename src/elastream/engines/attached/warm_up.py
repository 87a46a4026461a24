"""A first task for executors that have just come, so that no batch has to wait for it.

An executor's first task is slow: it loads classes, and starts Python if the query needs it. That
takes as long as some batches do. Tasks of a batch that an executor gets first thing are its last to
end, and with one more executor the batch takes longer than without. So whoever comes between two
batches is given a task that does nothing. Every part of a task that runs in Python has a process of
its own, which loads its libraries: the task has as many such parts as those of the query.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from elastream.engines.executors.base import Cluster
from elastream.errors import described

log = logging.getLogger(__name__)

DESCRIPTION = "elastream: a first task for new executors"
PATIENCE_SECONDS = 10.0
"""An executor that cannot be reached for this long gets its first task from a batch."""
PYTHON = re.compile(r"Python|InArrow|InPandas|InPySpark")
"""In a line of a query's plan: a part that runs in Python."""
EXCHANGE = re.compile(r"Exchange")
"""In a line of a query's plan: what is below runs in other tasks."""


class WarmUp:
    """Gives executors their first task.

    Args:
        session: A session of their application.
        cluster: Lists them.
        python_parts: How many parts of a task of the queries run in Python.
    """

    def __init__(
        self, session: SparkSession, cluster: Cluster, python_parts: Callable[[], int]
    ) -> None:
        self._session = session
        self._cluster = cluster
        self._python_parts = python_parts
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Some are new; returns without waiting."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        give_up = time.monotonic() + PATIENCE_SECONDS
        # Spark lists an executor a moment before it gives it tasks.
        while time.monotonic() < give_up:
            executors = self._cluster.list()
            if not any(executor.new for executor in executors):
                return
            try:
                self._job(sum(executor.cores for executor in executors))
            except Exception as error:  # Batches do without.
                log.info("new executors could not be given a first task: %s", described(error))
                return

    def _job(self, tasks: int) -> None:
        """One task for every core: Spark gives each to another one, if all are free."""

        # Pickled by value: executors need not have elastream.
        def unchanged(batches: Iterator[Any]) -> Iterator[Any]:
            yield from batches

        self._session.sparkContext.setJobDescription(DESCRIPTION)
        rows = self._session.range(0, tasks, 1, tasks)
        for _ in range(self._python_parts()):
            rows = rows.mapInArrow(unchanged, "id long")
        rows.write.format("noop").mode("overwrite").save()


def python_parts(queries: Iterable[Any]) -> int:
    """How many parts in Python a task has at most, in the newest batches of these queries."""
    return max((_python_parts(_plan(query)) for query in queries), default=0)


def _python_parts(plan: str) -> int:
    r"""The most between two exchanges: the parts of a task work at the same time.

    >>> _python_parts("MapInArrow double\n+- MapInPandas sum\n   +- Exchange\n      +- PythonScan")
    2
    """
    stages = (stage.splitlines() for stage in EXCHANGE.split(plan))
    return max(sum(bool(PYTHON.search(line)) for line in lines) for lines in stages)


def _plan(query: Any) -> str:
    try:
        return str(query._jsq.streamingQuery().lastExecution().executedPlan().toString())
    except Exception:  # There was no batch yet.
        return ""
