"""The sink of a query that feeds a source: its rows go into the source's inbox."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.inbox import Inbox

PIECE = 500
"""The most events in a batch: what one replica works on is out of reach for the others."""
FULL_SECONDS = 0.05


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What a task has staged."""

    name: str
    events: int


class InboxSink(DataSource):
    """The data source; its options are the state, the source and the queue's bound."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "elastream-inbox"

    def streamWriter(self, schema: Any, overwrite: bool) -> InboxWriter:  # noqa: N802 - Spark's name
        """One writer per batch of the query."""
        return InboxWriter(
            self.options["state"], self.options["source"], int(self.options["queue_size"])
        )


class InboxWriter(DataSourceStreamArrowWriter):
    """Stages in the tasks, admits on the driver."""

    def __init__(self, state: str, source: str, queue_size: int) -> None:
        self._state = state
        self._source = source
        self._queue_size = queue_size

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a partition piece by piece, while the inbox has room."""
        name, events = uuid.uuid4().hex, 0
        with closing(self._inbox()) as inbox:
            for batch in iterator:
                for start in range(0, batch.num_rows, PIECE):
                    piece = pa.Table.from_batches([batch.slice(start, PIECE)])
                    self._wait_for_room(inbox)
                    inbox.stage(name, piece.num_rows, to_bytes(piece))
                    events += piece.num_rows
        return Staged(name, events)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Admit what the tasks staged."""
        staged = [message for message in messages if isinstance(message, Staged)]
        with closing(self._inbox()) as inbox:
            inbox.admit(batchId, {each.name: each.events for each in staged})

    def _inbox(self) -> Inbox:
        return open_backend(self._state).inbox(self._source)

    def _wait_for_room(self, inbox: Inbox) -> None:
        # What is staged for this very batch does not count: it leaves when the batch is complete.
        while inbox.waiting() >= self._queue_size:
            time.sleep(FULL_SECONDS)
