"""A streaming DataFrame goes through a pipeline, and Spark's own operators do what needs state.

    python examples/dataframes.py FOLDER

The readings are Spark's own test stream; a Kafka topic or a folder of files works in the same
way. An elastream operator remembers nothing between batches. Windows, joins and other state are
Spark's: here, the output of `hot` is counted in windows of two seconds. Run it again with the same
folder, after Ctrl-C or a crash: it resumes where it stopped.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.functions import avg, col, count, window

import elastream

pipeline = elastream.Pipeline("readings")
readings = pipeline.source("readings")


@pipeline.operator(after=readings, pool=3, grouping="load-aware")
def celsius(batch: pa.Table) -> pa.Table:
    swing = pc.sin(pc.multiply(batch["value"], 0.01))
    return batch.append_column("celsius", pc.add(20.0, pc.multiply(swing, 15.0)))


@pipeline.operator(after=celsius, pool=2)
def hot(batch: pa.Table) -> pa.Table:
    return batch.filter(pc.greater(batch["celsius"], 30.0))


def run(spark: SparkSession, folder: Path, enough: int = 10_000) -> None:
    rate = spark.readStream.format("rate").option("rowsPerSecond", 500)
    with elastream.run(
        pipeline,
        {"readings": rate.option("numPartitions", 1).load()},
        state=folder / "state",
        td=2.0,
        outputs={"hot": "value long, timestamp timestamp, celsius double"},
    ) as going:
        windows = (
            going["hot"]
            .withWatermark("timestamp", "1 second")
            .groupBy(window("timestamp", "2 seconds"))
            .agg(count("value").alias("readings"), avg("celsius").alias("celsius"))
            .select(col("window.start").alias("from"), "readings", "celsius")
        )
        stored = (
            windows.writeStream.format("parquet")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start(str(folder / "hot"))
        )
        for _ in going.follow():
            print(going.status())
            if going.status().events_in >= enough:
                break
    stored.processAllAvailable()
    stored.stop()
    print(going.status())
    print(f"{spark.read.parquet(str(folder / 'hot')).count():,} windows in {folder / 'hot'}")


if __name__ == "__main__":
    run(elastream.session(pipeline), Path(sys.argv[1]))
