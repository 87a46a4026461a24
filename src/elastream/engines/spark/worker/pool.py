"""The pool as Spark sees it: a streaming data source whose partitions are the replicas.

A generation of replicas is one query with one batch. The batch lasts as long as the generation:
`read` is the replica's life, and what it returns is its report.

Spark plans the query in three more processes, one after the other, which all import this module:
so it imports nothing that only replicas need.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

PARENT_LOOK_SECONDS = 1.0


class Pool(DataSource):
    """The data source; its options are the state folder, the generation and its members."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "elastream-pool"

    def schema(self) -> str:
        """What a replica reports when it ends."""
        return "member string, number int, process int, seconds double"

    def reader(self, schema: Any) -> NobodyReader:
        """What a read that is no stream finds."""
        return NobodyReader()

    def streamReader(self, schema: Any) -> PoolReader:  # noqa: N802 - Spark's name
        """One reader per query."""
        members = json.loads(self.options["members"])
        return PoolReader(Path(self.options["folder"]), int(self.options["generation"]), members)


class NobodyReader(DataSourceReader):
    """No replica, in one partition: to find that out, Spark starts all processes that it needs."""

    def read(self, partition: InputPartition) -> Iterator[tuple[str, int, int, float]]:
        """Find nobody."""
        return iter(())


class PoolReader(DataSourceStreamReader):
    """One batch, with one partition per replica."""

    def __init__(self, folder: Path, generation: int, members: Sequence[tuple[str, int]]) -> None:
        self._folder = folder
        self._generation = generation
        self._members = members

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Before the only batch."""
        return {"generation": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        """After the only batch."""
        return {"generation": 1}

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """One for every member."""
        return [InputPartition(member) for member in self._members]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, int, int, float]]:
        """Live, then report."""
        from elastream.engines.spark.backends.base import SupersededError
        from elastream.engines.spark.backends.sqlite import SqliteTransport
        from elastream.engines.spark.worker.deployment import Deployment
        from elastream.errors import described

        started = time.monotonic()
        name, number = partition.value
        exit_with_parent()
        transport = SqliteTransport(self._folder, self._generation)
        try:
            Deployment.load(self._folder).member(name, number, transport).run()
        except SupersededError:
            pass
        except Exception as error:
            transport.report_failure((name, number), described(error))
            raise
        finally:
            transport.close()
        yield name, number, os.getpid(), time.monotonic() - started


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
