"""One generation of workers: a Spark query, whose tasks they are."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.engines.spark.backends.checkpoints import for_spark
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.worker.pool import Pool
from elastream.errors import described

log = logging.getLogger(__name__)


@dataclass
class Generation:
    """A query, the number that its workers know it by, and who must be ready before it begins."""

    number: int
    query: StreamingQuery
    workers: int
    required: frozenset[MemberName]
    checkpoint: Path

    @classmethod
    def started(
        cls,
        session: SparkSession,
        deployment: str,
        number: int,
        workers: int,
        required: frozenset[MemberName],
        checkpoints: Path,
    ) -> Generation:
        """Start the query; its workers get ready, and wait to be told to begin."""
        checkpoint = checkpoints / str(number)
        query = (
            session.readStream.format(Pool.name())
            .option("deployment", deployment)
            .option("generation", str(number))
            .option("workers", str(workers))
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", for_spark(checkpoint))
            .start()
        )
        return cls(number, query, workers, required, checkpoint)

    def ended(self) -> str | None:
        """Why the query has ended, without Spark's traces; None if it runs.

        A Spark that cannot be asked runs nothing.
        """
        try:
            if self.query.isActive:
                return None
            error = self.query.exception()
        except Exception as error:
            return f"Spark does not answer: {described(error)}"
        if error is None:
            return "it ended"
        cause, *_ = str(error).partition("=== Streaming Query")
        return cause.strip()

    def finished(self) -> bool:
        """Whether its only batch is over."""
        return self.ended() is not None or bool(self.query.recentProgress)

    def stop(self) -> None:
        """Stop the query, and remove its checkpoint, which nobody resumes."""
        try:
            self.query.stop()
        except Exception as error:  # One of a Spark that is gone has stopped.
            log.warning("the workers' query could not be stopped: %s", described(error))
        shutil.rmtree(self.checkpoint, ignore_errors=True)
