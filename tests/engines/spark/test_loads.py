"""What waits for replicas is told to producers at least once a second, however long a sample is."""

import numpy as np
import pyarrow as pa

from elastream.core.groupings.base import ReplicaLoads
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.worker.trace_player import TraceSource
from support.waiting import eventually


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
