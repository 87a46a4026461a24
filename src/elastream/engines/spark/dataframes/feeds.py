"""Sources that streaming DataFrames feed, and their queries, on the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.engines.spark.backends.base import Backend
from elastream.engines.spark.backends.checkpoints import FEEDS, folder_of, for_spark
from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED
from elastream.engines.spark.dataframes.sink import InboxSink
from elastream.errors import EngineError, InvalidInputError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataFrameSource:
    """The events of a streaming DataFrame: each once, even when the driver dies."""

    frame: DataFrame
    trigger: Mapping[str, Any] = field(default_factory=dict)
    """When Spark looks for new events, as in `DataStreamWriter.trigger`; always, unless given."""

    def __post_init__(self) -> None:
        if not self.frame.isStreaming:
            raise InvalidInputError(
                "the DataFrame of a source must be a streaming one: make it with spark.readStream"
            )

    @property
    def columns(self) -> list[str]:
        """What its events have."""
        return list(self.frame.columns)


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
        with ExitStack() as every:  # Also after one that cannot be stopped.
            for query in self._queries.values():
                every.callback(query.stop)


def check_checkpoints(
    backend: Backend, sources: Mapping[str, DataFrameSource], elsewhere: bool
) -> None:
    """Whether a driver on another machine could resume, as it can with everything else.

    Args:
        backend: The state.
        sources: The DataFrames.
        elsewhere: Whether tasks run on other machines, too.
    """
    if not sources:
        return
    if not backend.checkpoints:
        raise InvalidInputError(
            f"the source {min(sources)!r} is a DataFrame, and the state {backend.url} cannot hold "
            "its checkpoint, which says how far it was read: name a place that survives this "
            "machine with --checkpoint, or checkpoint= in Python, such as hdfs://HOST/FOLDER"
        )
    if elsewhere and (folder := folder_of(backend.checkpoints)) is not None:
        log.warning(
            "the checkpoint %s is a folder: mount it wherever the driver may be started again",
            folder,
        )


def take_over_inbox(backend: Backend, source: str) -> None:
    """Discard what a killed run has not admitted; an error if it cannot be resumed."""
    with closing(backend.inbox(source)) as inbox:
        checkpoint = checkpoint_of(backend, source)
        admitted, read = inbox.admitted(), newest_batch(checkpoint)
        if admitted > NOTHING_ADMITTED and read is None:
            raise InvalidInputError(
                f"the state {backend.url} has events of the source {source!r}, but its checkpoint "
                f"{checkpoint} is gone, which says where its DataFrame stopped: name the "
                "checkpoint that the state was used with, or another state"
            )
        if read is not None and read > admitted:
            raise InvalidInputError(
                f"the checkpoint {checkpoint} is not of the state {backend.url}: its DataFrame was "
                "read further, and what was read would be lost: name another checkpoint, or remove "
                "this one to begin anew"
            )
        inbox.discard()


def newest_batch(checkpoint: str) -> int | None:
    """The newest batch that its query has finished, -1 if none, None if there is no checkpoint.

    It may be in a file system that only Spark can look into.
    """
    # PySpark has no public way to Hadoop's file systems.
    session = SparkSession.active()
    java: Any = session._jvm
    path = java.org.apache.hadoop.fs.Path
    files = path(checkpoint).getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
    if not files.exists(path(checkpoint)):
        return None
    commits = path(f"{checkpoint}/commits")
    found = files.listStatus(commits) if files.exists(commits) else []
    names = [status.getPath().getName() for status in found]
    return max((int(name) for name in names if name.isdigit()), default=NOTHING_ADMITTED)


def checkpoint_of(backend: Backend, source: str) -> str:
    """Where Spark remembers what the query of a source has read."""
    return for_spark(f"{backend.checkpoints}/{FEEDS}/{source}")


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
