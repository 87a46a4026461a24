"""What waits for replicas is told to producers at least once a second, however long a sample is."""

import numpy as np
import pyarrow as pa

from elastream.core.chains import Chains
from elastream.core.groupings.base import ReplicaLoads
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.board import NO_PLAN
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.engines.spark.driver import loads
from elastream.engines.spark.driver.condition import Condition
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.loads import LoadReports
from elastream.engines.spark.worker.trace_player import TraceSource
from support.waiting import eventually
from support.workers import Workers


def test_every_window_is_reported_by_itself_to_those_who_listen():
    pipeline = Pipeline("loads")
    pipeline.add(len, name="work", after=pipeline.source("in"), pool=2, grouping="load-aware")
    pipeline.add(len, name="end", after="work", grouping="shuffle")
    topology = pipeline.topology()
    assert loads.wanted_by(topology)
    workers = Workers(topology)
    reports = LoadReports(
        Chains.planned(topology),
        workers.board,
        workers.ledger.totals(),
        lambda members: Condition(NO_PLAN, {"work": 1, "end": 1}, members, frozenset()),
    )
    producer, seen = workers.joined(("in", 0)), 0
    for events in (10, 4):
        data = to_bytes(pa.table({"n": range(events)}))
        parcel = Parcel("work", 0, events, Births.evenly(events, 0.0), data)
        assert producer.lanes.commit([], [parcel], Counts(emitted=events, sent={"work": events}))
        reports.post(2.0, workers.ledger.totals(), {"in": ()})
        seen, news = workers.board.feedback(("in", 0), ["work", "end"], seen)
        assert [(name, of.arriving, of.period) for name, of in news] == [("work", events / 2, 2.0)]


def test_loads_are_reported_also_while_a_long_sample_lasts(spark_session, tmp_path):
    def same(table):
        return table

    pipeline = Pipeline("loads")
    pipeline.add(
        same,
        name="work",
        after=pipeline.source("in"),
        pool=2,
        grouping="load-aware",
        execution_time=0.001,
    )
    source = TraceSource(
        lambda first, count: pa.table({"id": range(first, first + count)}),
        1.0,
        np.full(3600, 200.0),
    )
    engine = SparkEngine(
        pipeline.topology(), {"in": source}, tmp_path, spark_session, sample=3600.0
    )
    try:
        with engine.backend.connect() as connection:

            def arriving():
                _, news = connection.board.feedback(("in", 0), ["work"], 0)
                return [of.arriving for _, of in news if isinstance(of, ReplicaLoads)]

            eventually(lambda: any(rate > 0 for rate in arriving()))
    finally:
        engine.close()
