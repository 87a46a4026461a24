"""From one Kafka topic to another, with Spark's own source and sink around a pipeline.

    python examples/kafka_in_out/kafka_in_out.py --brokers localhost:9092

Payments come in as JSON on the topic `payments`; every one leaves with a risk on the topic `risks`.
What waits between operators is on Kafka, too. Ctrl-C drains and stops; started again, it goes on.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json, struct, to_json
from pyspark.sql.streaming.query import StreamingQuery

import elastream

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
"""The version that the tests use; it works with PySpark 4.3."""
LOOKUP_SECONDS = 0.002
"""How long it takes to look an account up; here, this is only waited for."""

pipeline = elastream.Pipeline("payments")
payments = pipeline.source("payments")


@pipeline.operator(after=payments, pool=2)
def valid(row: dict[str, Any]) -> dict[str, Any] | None:
    return row if row["amount"] > 0 else None


@pipeline.operator(after=valid, pool=4, grouping="key", key="account")
def score(row: dict[str, Any]) -> dict[str, Any]:
    """One replica sees all payments of an account, in their order."""
    time.sleep(LOOKUP_SECONDS)
    return {"id": row["id"], "account": row["account"], "risk": min(row["amount"] / 1_000, 1.0)}


OUTPUTS = {"score": "id long, account string, risk double"}


def session(jars: Path | None = None) -> SparkSession:
    """A session with Spark's connector for Kafka: from a folder of jars, or fetched by Spark."""
    if jars is None:
        return elastream.session(pipeline, config={"spark.jars.packages": CONNECTOR})
    files = ",".join(map(str, sorted(jars.glob("*.jar"))))
    return elastream.session(pipeline, config={"spark.jars": files})


def read(spark: SparkSession, brokers: str, topic: str) -> DataFrame:
    """Payments, from the first one that is still there."""
    schema = "id long, account string, amount double"
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 10_000)
        .load()
        .select(from_json(col("value").cast("string"), schema).alias("payment"))
        .select("payment.*")
    )


def write(run: elastream.PipelineRun, brokers: str, topic: str, checkpoint: Path) -> StreamingQuery:
    """Every risk as JSON, under the number of its payment."""
    return (
        run["score"]
        .select(
            col("id").cast("string").alias("key"),
            to_json(struct("id", "account", "risk")).alias("value"),
        )
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("topic", topic)
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--brokers", default="localhost:9092")
    options.add_argument("--from", dest="source", default="payments", help="topic")
    options.add_argument("--to", dest="target", default="risks", help="topic")
    options.add_argument("--checkpoint", type=Path, default=Path("checkpoint"), help="folder")
    options.add_argument("--jars", type=Path, help="a folder with Spark's connector for Kafka")
    chosen = options.parse_args()
    folder = chosen.checkpoint.absolute()
    spark = session(chosen.jars)
    state = f"kafka:{chosen.brokers}/elastream-payments"
    sources = {"payments": read(spark, chosen.brokers, chosen.source)}
    with elastream.run(pipeline, sources, state=state, checkpoint=folder, outputs=OUTPUTS) as run:
        query = write(run, chosen.brokers, chosen.target, folder / "risks")
        print("running; Ctrl-C drains and stops", flush=True)
        run.await_termination()
        query.stop()
    print(run.status())
    spark.stop()


if __name__ == "__main__":
    main()
