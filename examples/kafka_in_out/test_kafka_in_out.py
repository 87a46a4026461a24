"""The example moves every payment from one topic to the other, also when it is started again."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.kafka.broker import SPARK_JARS
from support.processes import descendants
from support.waiting import eventually

EXAMPLE = Path(__file__).with_name("kafka_in_out.py")
PAYMENTS = 300
PATIENCE = 180.0


@pytest.fixture
def address(kafka_cluster):
    """A broker that has both topics."""
    admin = AdminClient({"bootstrap.servers": kafka_cluster.address, "log_level": 0})
    for made in admin.create_topics([NewTopic("payments", 3), NewTopic("risks", 2)]).values():
        made.result(20)
    return kafka_cluster.address


def pay(address, numbers):
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for number in numbers:
        amount = -1.0 if number % 10 == 9 else 3.0 * number
        payment = {"id": number, "account": f"A{number % 7}", "amount": amount}
        producer.produce("payments", json.dumps(payment), str(number))
    assert producer.flush(20) == 0


def rated(address):
    """What is on the topic of risks, in any order."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False}
    )
    parts = [TopicPartition("risks", partition, 0) for partition in range(2)]
    ends = [consumer.get_watermark_offsets(part, 20, cached=False)[1] for part in parts]
    consumer.assign(parts)
    found = [json.loads(each.value()) for each in consumer.consume(sum(ends), 20)]
    consumer.close()
    return sorted((each["id"], each["risk"]) for each in found)


def expected(numbers):
    return [(n, min(3.0 * n / 1_000, 1.0)) for n in numbers if n % 10 != 9 and n]


def until_rated(address, folder, payments):
    """Run the example until all of them are there, then press Ctrl-C."""
    command = [sys.executable, str(EXAMPLE), "--brokers", address, "--jars", str(SPARK_JARS)]
    with open(folder / "log", "a") as log:
        program = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        wanted = len(expected(payments))
        eventually(lambda: program.poll() is not None or len(rated(address)) >= wanted, PATIENCE)
        program.send_signal(signal.SIGINT)
        code = program.wait(PATIENCE)
    finally:
        below = descendants(program.pid)
        program.kill()
        for process in below:
            process.kill()
    assert code == 0, (folder / "log").read_text()[-3_000:]


def test_every_payment_leaves_once_also_when_it_is_started_again(address, tmp_path):
    if not SPARK_JARS.exists():
        pytest.skip(f"there is no connector in {SPARK_JARS}: run 'make kafka'")
    pay(address, range(PAYMENTS // 2))
    until_rated(address, tmp_path, range(PAYMENTS // 2))
    pay(address, range(PAYMENTS // 2, PAYMENTS))
    until_rated(address, tmp_path, range(PAYMENTS))
    assert rated(address) == expected(range(PAYMENTS))
