"""A streaming DataFrame goes through a pipeline and comes out as another one.

    python examples/dataframes.py FOLDER

The readings are Spark's own test stream; a topic of Kafka or a folder of files is fed in the same
way. Run it again with the same folder, after Ctrl-C or worse: it goes on where it stopped.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from elastream import Pipeline
from elastream.control import ControlLoop
from elastream.engines.spark.dataframes.source import DataFrameSource
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.preflight import slots_for
from elastream.engines.spark.driver.session import new_session
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS

pipeline = Pipeline("readings")
readings = pipeline.source("readings")


@pipeline.operator(after=readings, pool=3, grouping="load-aware")
def celsius(batch: pa.Table) -> pa.Table:
    swing = pc.sin(pc.multiply(batch["value"], 0.01))
    return batch.append_column("celsius", pc.add(20.0, pc.multiply(swing, 15.0)))


@pipeline.operator(after=celsius, pool=2)
def hot(batch: pa.Table) -> pa.Table:
    return batch.filter(pc.greater(batch["celsius"], 30.0))


topology = pipeline.topology()


def run(spark: SparkSession, folder: Path, enough: int = 10_000) -> None:
    rate = spark.readStream.format("rate").option("rowsPerSecond", 500)
    frame = rate.option("numPartitions", 1).load()
    engine = SparkEngine(
        topology,
        {"readings": DataFrameSource(frame)},
        folder / "state",
        spark,
        outputs={"hot": "value long, timestamp timestamp, celsius double"},
    )
    stored = (
        engine.stream("hot")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(str(folder / "hot"))
    )
    loop = ControlLoop(engine, POLICIES["pa-sps"](), PREDICTORS["lr"](), td=2.0)
    events = 0.0
    for cycle in loop.run():
        if cycle.stats is None:
            raise SystemExit(cycle.note)
        events += cycle.stats.sources["readings"].emitted
        active = {name: of.active for name, of in cycle.stats.operators.items()}
        print(f"{cycle.time:3.0f} s  {events:,.0f} events, replicas: {active}")
        if events >= enough:
            break
    if not engine.drain(60):
        print("some events still wait; the next run goes on with them")
    stored.stop()
    engine.close()
    rows = spark.read.parquet(str(folder / "hot"))
    print(f"{rows.count():,} hot readings in {folder / 'hot'}")


if __name__ == "__main__":
    run(new_session(slots_for(topology, feeds=1, outputs=1)), Path(sys.argv[1]))
