"""The pool as Spark sees it: a streaming data source whose partitions are the workers.

A generation of workers is one query with one batch. The batch lasts as long as the generation:
`read` is the worker's life, and what it returns is its report. A worker is nobody in particular
until the board gives it a role.

Spark plans the query in three more processes, one after the other, which all import this module:
so it imports nothing that only workers need.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

PARENT_LOOK_SECONDS = 3.0
"""How often a worker looks for its parent, which takes it a wake-up with nothing else to do."""


class Pool(DataSource):
    """The data source; its options are the deployment, the generation and how many workers."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "elastream-pool"

    def schema(self) -> str:
        """What a worker reports when it ends."""
        return "worker int, process int, seconds double"

    def reader(self, schema: Any) -> NobodyReader:
        """What a read that is no stream finds."""
        return NobodyReader()

    def streamReader(self, schema: Any) -> PoolReader:  # noqa: N802 - Spark's name
        """One reader per query."""
        workers, generation = int(self.options["workers"]), int(self.options["generation"])
        return PoolReader(self.options["deployment"], generation, workers)


class NobodyReader(DataSourceReader):
    """No worker, in one partition: to find that out, Spark starts all processes that it needs."""

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, float]]:
        """Find nobody."""
        return iter(())


class PoolReader(DataSourceStreamReader):
    """One batch, with one partition per worker."""

    def __init__(self, deployment: str, generation: int, workers: int) -> None:
        self._deployment = deployment
        self._generation = generation
        self._workers = workers

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Before the only batch."""
        return {"generation": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        """After the only batch."""
        return {"generation": 1}

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """One for every worker."""
        return [InputPartition(worker) for worker in range(self._workers)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, float]]:
        """Take one role after the other until there is none left; then report."""
        from elastream.engines.spark.worker.deployment import Deployment

        started = time.monotonic()
        exit_with_parent()
        deployment = Deployment.from_text(self._deployment)
        with deployment.backend.connect() as connection:
            board, worker = connection.board, partition.value
            while role := board.take_role(self._generation, worker):
                if not _act(deployment, role, self._generation, connection):
                    break
        yield partition.value, os.getpid(), time.monotonic() - started


def _act(deployment: Any, role: tuple[str, int], generation: int, connection: Any) -> bool:
    """Act in a role until dismissed from it; False if others do who came later."""
    from elastream.engines.spark.backends.members import SupersededError
    from elastream.errors import described, place_of

    try:
        deployment.member(role, connection, generation).run()
    except SupersededError:
        return False
    except Exception as error:
        place = place_of(error)
        told = f"{described(error)} ({place})" if place else described(error)
        connection.board.report_failure(generation, role, told)
        raise
    return True


@cache
def exit_with_parent() -> None:
    """Let this process end soon after its parent, whatever it is doing.

    Spark's daemon ends its workers when Spark ends. When the daemon is killed with it, nobody does;
    they could not repeat or lose anything, but would work on without a driver.
    """
    parent = os.getppid()
    threading.Thread(target=_watch_parent, args=(parent,), name="watch parent", daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_LOOK_SECONDS)
    os._exit(1)
