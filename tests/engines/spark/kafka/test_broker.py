"""The broker that tests and benchmarks start: real, and gone with the process that started it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.kafka.broker import Cluster
from support.processes import descendants

QUIET = {"log_level": 0}
ROOT = Path(__file__).parents[4]


def first(address: dict[str, object], topic: str) -> bytes | None:
    """What a reader of committed records finds first."""
    consumer = Consumer({**address, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(20)
    consumer.close()
    return None if message is None or message.error() else message.value()


def test_what_was_read_outlives_a_broker_that_is_killed(own_kafka_cluster: Cluster) -> None:
    address = {"bootstrap.servers": own_kafka_cluster.address, **QUIET}
    admin = AdminClient(address)
    admin.create_topics([NewTopic("kept", 1)])["kept"].result(10)
    producer = Producer({**address, "transactional.id": "test-broker"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("kept", b"committed")
    producer.commit_transaction(10)
    assert first(address, "kept") == b"committed"

    own_kafka_cluster.brokers[0].kill()
    own_kafka_cluster.brokers[0].start()
    own_kafka_cluster.wait()

    assert first(address, "kept") == b"committed"


STARTS = """
import sys, time
from pathlib import Path
from support.kafka.broker import Cluster
with Cluster(Path(sys.argv[1])) as cluster:
    print(cluster.brokers[0].process.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.usefixtures("kafka_cluster")
def test_a_broker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTS, str(tmp_path / "kafka")],
        cwd=ROOT / "tests",
        stdout=subprocess.PIPE,
    )
    assert starter.stdout is not None
    number = int(starter.stdout.readline())
    (broker,) = [each for each in descendants(starter.pid) if each.number == number]
    starter.kill()
    starter.communicate()
    ends = time.monotonic() + 10
    while broker.alive and time.monotonic() < ends:
        time.sleep(0.05)
    assert not broker.alive
