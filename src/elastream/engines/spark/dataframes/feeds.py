"""The queries that feed sources, on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.engines.spark.backends.base import NOTHING_ADMITTED, Backend
from elastream.engines.spark.dataframes.sink import InboxSink
from elastream.engines.spark.dataframes.source import DataFrameSource
from elastream.errors import EngineError, InvalidInputError


class Feeds:
    """One query for every DataFrame, from where the last run stopped."""

    def __init__(
        self,
        session: SparkSession,
        backend: Backend,
        sources: Mapping[str, DataFrameSource],
        queue_size: int,
    ) -> None:
        self._queries: dict[str, StreamingQuery] = {}
        if sources:
            session.dataSource.register(InboxSink)
            # A writer looks its format up in the session that is active in the calling thread,
            # and a thread of the user's has none.
            java: Any = session._jvm
            java.SparkSession.setActiveSession(session._jsparkSession)
        try:
            for name, source in sources.items():
                self._queries[name] = _started(name, source, backend, queue_size)
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """An error if one of them has failed: what it has read is safe, but no more comes."""
        for name, query in self._queries.items():
            error = query.exception()
            if error is not None:
                cause, *_ = str(error).partition("=== Streaming Query")
                raise EngineError(f"the DataFrame of the source {name!r} failed: {cause.strip()}")

    def stop(self) -> None:
        """Let nothing more in; a batch that is not complete is read again by the next run."""
        for query in self._queries.values():
            query.stop()


def take_over_inbox(backend: Backend, source: str) -> None:
    """Discard what a killed run has not admitted; an error if it cannot be resumed."""
    with closing(backend.inbox(source)) as inbox:
        checkpoint = checkpoint_of(backend, source)
        if inbox.admitted() > NOTHING_ADMITTED and not is_there(checkpoint):
            raise InvalidInputError(
                f"the state {backend.url} has events of the source {source!r}, but its checkpoint "
                f"{checkpoint} is gone, which says where its DataFrame stopped: name another state"
            )
        inbox.discard()


def is_there(checkpoint: str) -> bool:
    """Whether there is such a folder; it may be in a file system that only Spark can look into."""
    if "://" not in checkpoint:
        return Path(checkpoint).exists()
    # PySpark has no public way to Hadoop's file systems.
    session = SparkSession.active()
    java: Any = session._jvm
    path = java.org.apache.hadoop.fs.Path(checkpoint)
    settings = session.sparkContext._jsc.hadoopConfiguration()
    return bool(path.getFileSystem(settings).exists(path))


def checkpoint_of(backend: Backend, source: str) -> str:
    """Where Spark remembers what the query of a source has read."""
    return f"{backend.checkpoints}/feeds/{source}"


def _started(
    name: str, source: DataFrameSource, backend: Backend, queue_size: int
) -> StreamingQuery:
    writer = (
        source.frame.writeStream.format(InboxSink.name())
        .option("state", backend.url)
        .option("source", name)
        .option("queue_size", str(queue_size))
        .option("checkpointLocation", checkpoint_of(backend, name))
    )
    return (writer.trigger(**source.trigger) if source.trigger else writer).start()
