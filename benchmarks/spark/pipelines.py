"""The pipeline of these benchmarks: operators in a line, which wait or pass events on."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from elastream import Pipeline, Topology
from elastream.core.decision import Plan
from elastream.engines.spark.backends.base import Connection
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.worker.trace_player import TraceSource

SERVICE_SECONDS = 0.001
TEXT = "what somebody has to say about something"
LONGEST_SECONDS = 3_600


def events(first: int, count: int) -> pa.Table:
    """The events with these numbers, about 50 bytes each."""
    return pa.table({"id": np.arange(first, first + count), "text": [TEXT] * count})


def wait(table: pa.Table) -> pa.Table:
    """Work that takes time and no processor, so that two cores can show sixteen replicas."""
    time.sleep(SERVICE_SECONDS * table.num_rows)
    return table


def pass_on(table: pa.Table) -> pa.Table:
    """No work at all."""
    return table


def change(table: pa.Table) -> pa.Table:
    """Hardly any work, but what comes out is new."""
    return table.set_column(0, "id", pc.add(table.column("id"), 1))


def line(
    operators: int,
    pool: int,
    function: Callable[[pa.Table], pa.Table],
    *,
    chain: bool = False,
    **settings: Any,
) -> Topology:
    """So many operators, one after the other; in a chain, they share one pool."""
    pipeline = Pipeline("line")
    before = pipeline.source("events")
    for number in range(operators):
        name = f"step{number}"
        chained = chain and number > 0
        pipeline.add(function, name=name, after=before, pool=pool, chain=chained, **settings)
        before = name
    return pipeline.topology()


def all_active(topology: Topology) -> Plan:
    """Every replica of every pool."""
    return active(topology, {op.name: op.pool for op in topology.operators})


def active(topology: Topology, replicas: dict[str, int]) -> Plan:
    """So many replicas of these operators, and one of the others."""
    return Plan({op.name: replicas.get(op.name, 1) for op in topology.operators})


@dataclass(frozen=True)
class Running:
    """An engine, and a connection of our own to look at it from outside."""

    engine: SparkEngine
    connection: Connection

    def processed(self, operator: str) -> dict[int, int]:
        """What each replica of the operator has processed so far."""
        counts = self.connection.ledger.totals().counts
        return {number: of.processed for (name, number), of in counts.items() if name == operator}

    def processes(self) -> dict[MemberName, int]:
        """The process of every member."""
        return {name: at.pid for name, at in self.connection.board.members().items()}


@contextmanager
def running(
    topology: Topology,
    rate: float | NDArray[np.float64],
    session: SparkSession,
    state: str | None = None,
    **settings: Any,
) -> Iterator[Running]:
    """The engine, with events coming at this rate per second, or at these, second by second.

    They repeat. The state is in a folder, or here.
    """
    source = TraceSource(events, 1.0, np.resize(np.asarray(rate, float), LONGEST_SECONDS))
    with tempfile.TemporaryDirectory() as folder:
        engine = SparkEngine(topology, {"events": source}, state or folder, session, **settings)
        try:
            with engine.backend.connect() as connection:
                yield Running(engine, connection)
        finally:
            engine.close()
