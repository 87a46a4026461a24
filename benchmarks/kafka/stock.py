"""The baseline on Kafka: a stock query from one topic to another, as an expert writes it.

The four functions are composed in one `mapInArrow`, with small Arrow batches and the quick
checkpoint manager. An event's latency is from the moment its producer sends it to the moment the
broker has its result: the broker stamps what it appends.
`python -m benchmarks.kafka.stock ADDRESS wait|pass RATE PARALLELISM SECONDS` prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.support.kafka.broker import SPARK_JARS

from benchmarks.spark.pipelines import TEXT, pass_on, wait
from benchmarks.spark.processor_time import of_family
from benchmarks.spark.steady import Steady
from benchmarks.spark.stock import OPERATORS, QUICK, SMALL_BATCHES, WARM_UP_SECONDS

TICK_SECONDS = 0.01
PATIENCE = 120.0


def feed(address: str, topic: str, rate: float, parallelism: int, over: threading.Event) -> None:
    """Send events at this rate, each with the time at which it was due."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 0})
    begun, sent = time.time(), 0
    while not over.wait(TICK_SECONDS):
        due = int((time.time() - begun) * rate)
        for number in range(sent, due):
            told = f"{begun + number / rate:.6f} {number} {TEXT}"
            producer.produce(topic, told, partition=number % parallelism)
            producer.poll(0)
        sent = due
    producer.flush(PATIENCE)


def latencies(address: str, topic: str, first: float, last: float) -> np.ndarray[Any, Any]:
    """How long each event took whose result was appended in this time."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": topic, "log_level": 0})
    partitions = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
    at = [TopicPartition(topic, number, int(1e3 * first)) for number in partitions]
    found = consumer.offsets_for_times(at, PATIENCE)
    ends = {p.partition: consumer.get_watermark_offsets(p, PATIENCE)[1] for p in found}
    begin = [p for p in found if 0 <= p.offset < ends[p.partition]]
    consumer.assign(begin)
    open_ends = {p.partition: ends[p.partition] for p in begin}
    taken = []
    while open_ends and (message := consumer.poll(PATIENCE)) is not None:
        _, stamp = message.timestamp()
        if message.offset() + 1 >= open_ends.get(message.partition(), 0):
            open_ends.pop(message.partition(), None)
        if stamp <= 1e3 * last:
            taken.append(stamp / 1e3 - float(message.value().split(b" ", 1)[0]))
    consumer.close()
    return np.array(taken)


def _has_any(address: str, topic: str) -> bool:
    consumer = Consumer({"bootstrap.servers": address, "group.id": topic, "log_level": 0})
    partitions = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), PATIENCE) for p in partitions]
    consumer.close()
    return any(last > first for first, last in ends)


def steady(address: str, kind: str, rate: float, parallelism: int, seconds: float) -> Steady:
    """Run the query, and measure after the warm-up."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    name = f"stock-{kind}-{os.getpid()}"
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    stamped = {"message.timestamp.type": "LogAppendTime"}
    topics = [
        NewTopic(f"{name}-in", parallelism),
        NewTopic(f"{name}-out", parallelism, config=stamped),
    ]
    for created in admin.create_topics(topics).values():
        created.result(PATIENCE)
    builder = SparkSession.builder.master(f"local[{parallelism}]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.jars": ",".join(map(str, sorted(SPARK_JARS.glob("*.jar")))),
        **QUICK,
        **(SMALL_BATCHES if kind == "wait" else {}),
    }
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    function = {"wait": wait, "pass": pass_on}[kind]

    def all_of_them(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for _ in range(OPERATORS):
                table = function(table)
            yield from table.to_batches()

    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", address)
    frame = reader.option("subscribe", f"{name}-in").load().select("value")
    over = threading.Event()
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.mapInArrow(all_of_them, "value binary").writeStream.format("kafka")
        query = (
            writer.option("kafka.bootstrap.servers", address)
            .option("topic", f"{name}-out")
            .option("checkpointLocation", checkpoint)
            .start()
        )
        feeder = threading.Thread(
            target=feed, args=(address, f"{name}-in", rate, parallelism, over), daemon=True
        )
        feeder.start()
        while not _has_any(address, f"{name}-out"):
            if query.awaitTermination(0.5):
                raise RuntimeError("the query ended before anything came out")
        time.sleep(WARM_UP_SECONDS)
        cpu, begun = of_family(os.getpid()), time.time()
        time.sleep(seconds)
        ended = time.time()
        cpu = of_family(os.getpid()) - cpu
        over.set()
        feeder.join()
        query.stop()
    took = latencies(address, f"{name}-out", begun, ended)
    session.stop()
    return Steady(
        mean=float(took.mean()),
        p99=float(np.quantile(took, 0.99)),
        throughput=len(took) / (ended - begun),
        cores=cpu / (ended - begun),
    )


def measured(
    address: str, kind: str, rate: float, parallelism: int, seconds: float = 20.0
) -> Steady:
    """The same in a process of its own."""
    words = [sys.executable, "-m", __name__, address, kind, str(rate), str(parallelism)]
    done = subprocess.run(
        [*words, str(seconds)], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return Steady(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    where, kind, *numbers = sys.argv[1:]
    rate, parallelism, seconds = float(numbers[0]), int(numbers[1]), float(numbers[2])
    print(json.dumps(asdict(steady(where, kind, rate, parallelism, seconds))))
