"""The baseline on Kafka: a stock query from one topic to another, as an expert writes it.

The four functions are composed in one `mapInArrow`, with small Arrow batches and the quick
checkpoint manager. An event's latency is from the moment its producer sends it to the moment the
broker has its result: the broker stamps what it appends. What was measured is printed as JSON.
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

from benchmarks.command import described, positive
from benchmarks.spark.pipelines import TEXT, pass_on, wait
from benchmarks.spark.processor_time import of_family
from benchmarks.spark.steady import Steady
from benchmarks.spark.stock import OPERATORS, QUICK, SMALL_BATCHES, WARM_UP_SECONDS

TICK_SECONDS = 0.01
PATIENCE = 60.0
START_SECONDS = 120.0
"""Until the first result: on a busy machine, Spark takes long to start the processes of tasks."""
MOST_SECONDS = 300.0
"""Of one query with all that belongs to it."""
MOST_AT_ONCE = 5_000
"""Events that the feeder sends before it looks whether it is over: it may never keep up."""
MOST_READ = 100_000
"""Results whose latency is looked at."""


def feed(address: str, topic: str, rate: float, parallelism: int, over: threading.Event) -> None:
    """Send events at this rate, each with the time at which it was due."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 0})
    begun, sent = time.time(), 0
    while not over.wait(TICK_SECONDS):
        due = min(int((time.time() - begun) * rate), sent + MOST_AT_ONCE)
        for number in range(sent, due):
            told = f"{begun + number / rate:.6f} {number} {TEXT}"
            while not _sent(producer, topic, told, number % parallelism):
                producer.poll(TICK_SECONDS)
        producer.poll(0)
        sent = due
    producer.flush(PATIENCE)


def _sent(producer: Producer, topic: str, told: str, partition: int) -> bool:
    """Whether there was room for it."""
    try:
        producer.produce(topic, told, partition=partition)
    except BufferError:
        return False
    return True


def results(
    address: str, topic: str, first: float, last: float
) -> tuple[int, np.ndarray[Any, Any]]:
    """How many were appended in this time, and how long each took, of as many as we look at."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": topic, "log_level": 0})
    partitions = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
    begins, ends = (_offsets(consumer, topic, list(partitions), at) for at in (first, last))
    consumer.assign([TopicPartition(topic, each, at) for each, at in begins.items()])
    count = sum(ends[each] - begins[each] for each in partitions)
    taken: list[float] = []
    until = time.monotonic() + PATIENCE
    while len(taken) < min(count, MOST_READ) and time.monotonic() < until:
        for message in consumer.consume(10_000, 1.0):
            if message.error() is None and message.offset() < ends[message.partition()]:
                _, stamp = message.timestamp()
                taken.append(stamp / 1e3 - float(message.value().split(b" ", 1)[0]))
    consumer.close()
    return count, np.array(taken)


def _offsets(consumer: Consumer, topic: str, partitions: list[int], at: float) -> dict[int, int]:
    """The first offset of every partition that is not older than this."""
    asked = [TopicPartition(topic, each, int(1e3 * at)) for each in partitions]
    found = consumer.offsets_for_times(asked, PATIENCE)
    return {
        each.partition: each.offset
        if each.offset >= 0
        else consumer.get_watermark_offsets(TopicPartition(topic, each.partition), PATIENCE)[1]
        for each in found
    }


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
        until = time.monotonic() + START_SECONDS
        while not _has_any(address, f"{name}-out"):
            if query.awaitTermination(0.5) or time.monotonic() > until:
                problem = query.exception() or query.status
                raise RuntimeError(f"nothing came out in {START_SECONDS:.0f} s: {problem}")
        time.sleep(WARM_UP_SECONDS)
        cpu, begun = of_family(os.getpid()), time.time()
        time.sleep(seconds)
        ended = time.time()
        cpu = of_family(os.getpid()) - cpu
        over.set()
        feeder.join()
        query.stop()
    count, took = results(address, f"{name}-out", begun, ended)
    session.stop()
    return Steady(
        mean=float(took.mean()),
        p99=float(np.quantile(took, 0.99)),
        throughput=count / (ended - begun),
        cores=cpu / (ended - begun),
    )


def measured(
    address: str, kind: str, rate: float, parallelism: int, seconds: float = 20.0
) -> Steady:
    """The same in a process of its own; an error if it fails, or takes for ever."""
    words = [sys.executable, "-m", __name__, address, kind, str(rate), str(parallelism)]
    try:
        done = subprocess.run([*words, str(seconds)], capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"the stock query did not end within {MOST_SECONDS:.0f} s") from None
    if done.returncode:
        raise RuntimeError(f"the stock query failed: {done.stderr[-2_000:].decode()}")
    return Steady(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    parser = described(__doc__)
    parser.add_argument("address", help="of a broker")
    parser.add_argument("kind", choices=["wait", "pass"])
    parser.add_argument("rate", type=float, help="events per second")
    parser.add_argument("parallelism", type=positive)
    parser.add_argument("seconds", type=float)
    print(json.dumps(asdict(steady(**vars(parser.parse_args())))))
