"""What each grouping claims, on Spark: medians of five runs of each, in turn, with their spread.

Operators wait, so that two cores can show all replicas. Two operators in a line make the second one
have several producers, each with its own copy of what it is told.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from elastream import Pipeline, Topology
from elastream.core.behaviour import OperatorBehaviour
from elastream.core.service_times import Fixed
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.session import new_session
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.workloads.sensitive import by_value
from elastream.workloads.waiting import VALUE, NumberedEvents, Waiting

POOL, RUNS = 4, 5
WARM_UP, SECONDS = 4.0, 6.0
LONGER = 4.0
"""Added to both where replicas have to learn first what values cost."""
SERVICE, SLOWER = 0.002, 3.0
SENSITIVE = 0.008


@dataclass
class OneIsSlow(Waiting):
    """Waits; in the first replica that gets ready, three times as long."""

    folder: str = ""
    _slow: bool = field(default=False, init=False)

    def setup(self) -> None:
        """Whoever makes the file is the slow one."""
        with suppress(FileExistsError):
            os.close(os.open(Path(self.folder) / "slow", os.O_CREAT | os.O_EXCL))
            self._slow = True

    def __call__(self, table: pa.Table) -> pa.Table:
        """Wait."""
        if self._slow:
            time.sleep((SLOWER - 1) * self.behaviour.time.mean * table.num_rows)
        return super().__call__(table)


Make = Callable[[str, str], Topology]
"""The pipeline with a grouping, which may use a folder."""


def equal(grouping: str, folder: str) -> Topology:
    """Two operators of equal replicas, keyed by the event's number where a grouping wants a key."""
    key = {"key": "id"} if grouping == "osg" else {}
    return _line([Waiting(OperatorBehaviour(Fixed(SERVICE)), 1)] * 2, grouping, SERVICE, key)


def one_slow(grouping: str, folder: str) -> Topology:
    """The second operator has a replica that is three times slower."""
    wait = OperatorBehaviour(Fixed(SERVICE))
    return _line([Waiting(wait, 1), OneIsSlow(wait, 2, folder)], grouping, SERVICE, {})


def by_values(grouping: str, folder: str) -> Topology:
    """DABS-Storm's sensitive topology: one operator, whose events cost what their value says."""
    key = {"key": VALUE} if grouping == "osg" else {}
    return _line([Waiting(OperatorBehaviour(by_value(SENSITIVE)), 1)], grouping, SENSITIVE, key)


def _line(
    functions: Sequence[Waiting], grouping: str, seconds: float, settings: dict[str, Any]
) -> Topology:
    pipeline = Pipeline("groupings")
    before = pipeline.source("in")
    for number, function in enumerate(functions):
        name = f"step{number}"
        pipeline.add(
            function,
            name=name,
            after=before,
            pool=POOL,
            grouping=grouping,
            execution_time=seconds,
            **settings,
        )
        before = name
    return pipeline.topology()


@dataclass(frozen=True)
class Latency:
    """Of one run, in milliseconds."""

    mean: float
    p99: float


def measured(make: Make, grouping: str, rate: float, session: SparkSession, run: int) -> Latency:
    """One run with all replicas active, after a warm-up."""
    values = by_value(SENSITIVE) if make is by_values else None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        topology = make(grouping, folder)
        source = TraceSource(NumberedEvents(values, run), 1.0, np.full(3600, rate))
        initial = {of.name: POOL for of in topology.operators}
        engine = SparkEngine(topology, {"in": source}, state, session, initial=initial)
        try:
            longer = LONGER if values else 0.0
            time.sleep(WARM_UP + longer)
            engine.observe()
            time.sleep(SECONDS + longer)
            found = engine.observe().latency
        finally:
            engine.close()
    assert found is not None
    return Latency(1000 * found.mean, 1000 * found.p99)


def in_turn(
    make: Make, groupings: Sequence[str], load: float, session: SparkSession
) -> dict[str, list[Latency]]:
    """Five runs of each grouping, one after the other."""
    seconds = SENSITIVE if make is by_values else SERVICE
    rate = load * POOL / seconds
    found: dict[str, list[Latency]] = {name: [] for name in groupings}
    for run in range(RUNS):
        for name in groupings:
            found[name].append(measured(make, name, rate, session, run))
    return found


def told(values: Sequence[float]) -> str:
    """A median with its spread."""
    return f"{statistics.median(values):,.0f} ms ({min(values):,.0f} to {max(values):,.0f})"


def compared(
    found: dict[str, list[Latency]], which: str, target: float | None = None
) -> list[Figure]:
    """Each grouping beside `shuffle`, of whose latency it may have at most the share `target`."""
    values = {name: [getattr(of, which) for of in runs] for name, runs in found.items()}
    base = statistics.median(values["shuffle"])
    figures = [Figure(f"{which}, shuffle", told(values["shuffle"]))]
    for name in values.keys() - {"shuffle"}:
        ratio = statistics.median(values[name]) / base
        text, met = ("", None) if target is None else (f"{target:.2f} of it", ratio <= target)
        figures.append(Figure(f"{which}, {name}", f"{told(values[name])}, {ratio:.2f}", text, met))
    return figures


def equal_replicas(session: SparkSession) -> bool:
    """Nothing to balance: groupings must not make it worse."""
    found = in_turn(equal, ("shuffle", "load-aware", "osg"), 0.5, session)
    title = "Equal replicas, 50 % load"
    return report(title, compared(found, "mean", 1.10))


def one_slow_replica(session: SparkSession) -> bool:
    """One replica in four three times slower, at a load that it cannot take with an equal share."""
    found = in_turn(one_slow, ("shuffle", "load-aware"), 0.5, session)
    title = "One replica in four three times slower, 50 % load"
    return report(title, compared(found, "p99", 0.5))


def costs_by_value(session: SparkSession) -> bool:
    """DABS-Storm's sensitive operator where replicas are scarce, as in the paper.

    With `osg`, a replica runs its function value by value and reports what each took. The advantage
    shrinks towards full load, and turns over close to it, where nothing is left to pay for that.
    """
    met = []
    for load, target in ((0.8, 0.7), (0.95, None)):
        found = in_turn(by_values, ("shuffle", "osg"), load, session)
        title = f"Execution times that depend on the value, {100 * load:.0f} % load"
        met.append(report(title, compared(found, "mean", target)))
    return all(met)


ALL = {
    "equal": equal_replicas,
    "slow": one_slow_replica,
    "values": costs_by_value,
}


def main(*names: str) -> bool:
    """Those of these names, or all, in one session."""
    session = new_session(4 * POOL + 8)
    try:
        results = [ALL[name](session) for name in names or ALL]
    finally:
        session.stop()
    return all(results)


if __name__ == "__main__":
    by_hand(main, ALL)
