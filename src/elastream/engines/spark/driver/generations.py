"""Generations of replicas: one Spark query each, the next one up before the last one ends.

A replica of the new generation joins in the place of the old one, which then has its commits
refused and ends by itself. So events flow on while the tasks change, and a query that dies is
replaced in the same way. Where there are not enough task slots for two generations at once, the
last one ends before the next one starts, and events wait meanwhile.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.engines.spark.backends.base import ReplicaName, Transport
from elastream.engines.spark.backends.sqlite import SqliteTransport
from elastream.engines.spark.worker.pool import Pool
from elastream.errors import EngineError

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
HANDOVER_SECONDS = 60.0
FAREWELL_SECONDS = 10.0


class Generations:
    """Keeps one generation of replicas alive, until it is closed."""

    def __init__(
        self,
        session: SparkSession,
        folder: Path,
        members: set[ReplicaName],
        epoch: float,
        overlap: bool = True,
    ) -> None:
        self._session = session
        self._folder = folder
        self._members = members
        self._epoch = epoch
        self._overlap = overlap
        # A farewell must not wait for the engine's own connection, nor disturb it.
        self._transport: Transport = SqliteTransport(folder)
        self._closed = threading.Event()
        self._ends = math.inf
        """When the epoch is over; it begins when all replicas are there."""
        self._query = self._start()
        self._thread = threading.Thread(target=self._keep, name="generations", daemon=True)
        self._thread.start()

    def wait_until_ready(self, seconds: float) -> None:
        """Come back when every replica has joined; an error when one cannot, or time is over."""

        def ready() -> bool:
            failures = self._transport.failures()
            if failures:
                (name, _), error = next(iter(failures.items()))
                raise EngineError(f"a replica of {name!r} cannot start: {error}")
            return self._transport.members().keys() >= self._members

        if not self._wait_for(ready, seconds):
            missing = self._members - self._transport.members().keys()
            raise EngineError(f"{len(missing)} replicas have not started in {seconds:g} s")
        self._ends = time.monotonic() + self._epoch

    def close(self) -> None:
        """Dismiss all replicas, give them time to finish what they do, and end the query."""
        self._closed.set()
        self._thread.join()
        self._end(self._query)
        self._transport.sweep()
        self._transport.close()
        shutil.rmtree(self._folder / "checkpoints", ignore_errors=True)

    def _keep(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            if self._query.isActive and time.monotonic() < self._ends:
                continue
            if not self._query.isActive:
                log.error("the replicas' query ended: %s", self._query.exception())
            self._renew()
            self._ends = time.monotonic() + self._epoch

    def _renew(self) -> None:
        if not self._overlap:
            self._end(self._query)
        before, old = dict(self._transport.members()), self._query
        self._query = self._start()

        def taken_over() -> bool:
            now = self._transport.members()
            return all(now.get(name) != before.get(name) for name in self._members)

        began = time.monotonic()
        if self._wait_for(taken_over, HANDOVER_SECONDS):
            log.info("a new generation has taken over after %.1f s", time.monotonic() - began)
        else:
            log.error("some replicas of the new generation have not started; the old ones end")
        old.stop()

    def _end(self, query: StreamingQuery) -> None:
        """Dismiss all replicas, and give them time to finish what they do."""
        self._transport.dismiss()
        self._wait_for(lambda: _finished(query), FAREWELL_SECONDS)
        query.stop()

    def _start(self) -> StreamingQuery:
        generation = str(time.time_ns())
        checkpoint = self._folder / "checkpoints" / generation
        return (
            self._session.readStream.format(Pool.name())
            .option("folder", str(self._folder))
            .option("generation", generation)
            .option("members", json.dumps(sorted(self._members)))
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(checkpoint))
            .start()
        )

    def _wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


def _finished(query: StreamingQuery) -> bool:
    """Whether its only batch is over."""
    return not query.isActive or bool(query.recentProgress)
