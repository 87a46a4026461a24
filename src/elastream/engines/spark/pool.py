"""The pool as Spark sees it: a streaming data source whose partitions are the replicas.

A generation of replicas is one query with one batch. The batch lasts as long as the generation:
`read` is the replica's life, and what it returns is its report.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from elastream.core.topology import Topology
from elastream.engines.spark.frames.relay import Relay
from elastream.engines.spark.orphans import end_with_parent
from elastream.engines.spark.replica import Replica
from elastream.engines.spark.source import Source, SourceRunner
from elastream.engines.spark.transport.base import SupersededError, Transport
from elastream.engines.spark.transport.sqlite import SqliteTransport

PIPELINE_FILE = "pipeline.pickle"


@dataclass(frozen=True)
class Deployment:
    """What every replica has to know, as a file in the state folder."""

    topology: Topology
    sources: dict[str, Source]
    """Those that play a trace; DataFrames feed the others."""
    queue_size: int
    outputs: frozenset[str] = frozenset()
    """The operators whose output can be read as a DataFrame."""

    def save(self, folder: Path) -> None:
        """Write it where replicas look for it."""
        (folder / PIPELINE_FILE).write_bytes(cloudpickle.dumps(self))  # type: ignore[no-untyped-call]

    @staticmethod
    def load(folder: Path) -> Deployment:
        """What `save` wrote."""
        deployment: Deployment = cloudpickle.loads((folder / PIPELINE_FILE).read_bytes())
        return deployment

    @property
    def members(self) -> list[tuple[str, int]]:
        """Every source, and every replica of every pool."""
        replicas = [
            (operator.name, number)
            for operator in self.topology.operators
            for number in range(operator.pool)
        ]
        return [*((source.name, 0) for source in self.topology.sources), *replicas]

    def member(
        self, name: str, number: int, transport: Transport
    ) -> SourceRunner | Relay | Replica:
        """One of them, ready to run."""
        if name in self.sources:
            return SourceRunner(name, self.sources[name], self.topology, transport, self.queue_size)
        if name not in self.topology.by_name:
            return Relay(name, self.topology, transport, self.queue_size)
        put_out = name in self.outputs
        return Replica(self.topology, name, number, transport, self.queue_size, put_out)


def send_by_value(module: ModuleType) -> None:
    """Let a module's functions travel as they are: workers cannot import what is not installed."""
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


class Pool(DataSource):
    """The data source; its options are the state folder and the generation."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "elastream-pool"

    def schema(self) -> str:
        """What a replica reports when it ends."""
        return "member string, number int, process int, seconds double"

    def streamReader(self, schema: Any) -> PoolReader:  # noqa: N802 - Spark's name
        """One reader per query."""
        return PoolReader(Path(self.options["folder"]), int(self.options["generation"]))


class PoolReader(DataSourceStreamReader):
    """One batch, with one partition per replica."""

    def __init__(self, folder: Path, generation: int) -> None:
        self._folder = folder
        self._generation = generation

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Before the only batch."""
        return {"generation": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        """After the only batch."""
        return {"generation": 1}

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """One for every member."""
        return [InputPartition(member) for member in Deployment.load(self._folder).members]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, int, int, float]]:
        """Live, then report."""
        started = monotonic()
        name, number = partition.value
        end_with_parent()
        transport = SqliteTransport(self._folder, self._generation)
        try:
            Deployment.load(self._folder).member(name, number, transport).run()
        except SupersededError:
            pass
        except Exception as error:
            transport.report_failure((name, number), f"{type(error).__name__}: {error}")
            raise
        finally:
            transport.close()
        yield name, number, os.getpid(), monotonic() - started
