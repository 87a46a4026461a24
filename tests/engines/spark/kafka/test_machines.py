"""A cluster of machines that share no files: with networks, disks and homes of their own.

The driver's machine dies, a worker's machine dies, or is cut off for a while: the run goes on,
nothing is lost and nothing is done twice.
"""

import json
import logging
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from elastream.engines.spark.backends import open_backend
from support.kafka.broker import SPARK_JARS, Cluster, skip_without_kafka
from support.lanes import lanes_of
from support.machines import DISK, SHARED, Machines
from support.spark_cluster import StandaloneCluster
from support.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("kafka")]
log = logging.getLogger(__name__)

EVENTS = 1_200
MOVE_SECONDS = 30.0
"""For a busy machine; it says how long it took with `-o log_cli=true --log-level INFO`."""
CUT_SECONDS = 10.0
PATIENCE = 300.0

OPERATORS = """
import time

import pyarrow as pa

from elastream import Pipeline

pipeline = Pipeline("numbers")
numbers = pipeline.source("numbers")


@pipeline.operator(after=numbers, pool=2, grouping="key", key="n")
def check(rows: list) -> list:
    time.sleep(0.001 * len(rows))
    return rows


@pipeline.operator(after=check, pool=2)
def double(rows: list) -> list:
    return [{"n": row["n"], "twice": 2 * row["n"]} for row in rows]

"""
FROM_A_TRACE = """
sources = {"numbers": lambda first, count: pa.table({"n": range(first, first + count)})}
"""
FROM_KAFKA = """
def sources(spark):
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "%s")
        .option("subscribe", "numbers")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 100)
        .load()
    )
    return {"numbers": records.selectExpr("cast(cast(value as string) as long) as n")}


outputs = {"double": "n long, twice long"}


def sinks(run):
    files = run["double"].writeStream.format("json")
    files.option("checkpointLocation", "%s/sink").start("%s/out")
"""


@pytest.fixture
def machines(tmp_path):
    skip_without_kafka()
    with Machines(tmp_path / "machines") as network:
        yield network


@pytest.fixture
def kafka(machines, tmp_path):
    with Cluster(tmp_path / "kafka", host=machines.address) as cluster:
        yield cluster


@contextmanager
def running(machine, pipeline, state, *options):
    """`elastream run` on a machine, where nothing of it is left in the end."""
    words = [sys.executable, "-m", "elastream", "run", "mine.py:pipeline"]
    work = machine.path(DISK / "work")
    work.mkdir(exist_ok=True)
    (work / "mine.py").write_text(pipeline)
    with open(work / "log", "w") as output:
        run = subprocess.Popen(
            machine.command([*words, "--state", state, "--td", "1", *options]),
            env=machine.environment,
            stdout=output,
            stderr=output,
        )
    run.log = lambda: (work / "log").read_text()[-3_000:]
    try:
        yield run
    finally:
        machine.kill()
        run.wait()


def totals(state):
    with open_backend(state).connect() as connection:
        return connection.ledger.totals()


def processed(state, operator="double"):
    counts = totals(state).counts
    return sum(of.processed for (name, _), of in counts.items() if name == operator)


def wait_until_processed(events, state, run):
    eventually(lambda: run.poll() is not None or open_backend(state).exists, PATIENCE)
    eventually(lambda: run.poll() is not None or processed(state) >= events, PATIENCE)
    assert run.poll() is None, run.log()


def feed(address, over):
    """Numbers at about 100 a second."""
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for number in range(EVENTS):
        producer.produce("numbers", str(number), str(number))
        if number % 10 == 9 and over.wait(0.1):
            return
    producer.flush(20)


def written(folder):
    """What Spark's sink has committed."""
    log = (folder / "_spark_metadata").iterdir()
    batches = [file for file in log if file.name.removesuffix(".compact").isdigit()]
    lines = [line for file in batches for line in file.read_text().splitlines()]
    paths = {json.loads(line)["path"] for line in lines if line.startswith("{")}
    files = [folder / path.rpartition("/")[2] for path in paths]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted((row["n"], row["twice"]) for row in rows)


def test_a_driver_whose_machine_dies_is_started_on_another_one(machines, kafka, tmp_path):
    if not SPARK_JARS.exists():
        pytest.skip(f"there is no connector in {SPARK_JARS}: run 'make kafka'")
    admin = AdminClient({"bootstrap.servers": kafka.address, "log_level": 0})
    admin.create_topics([NewTopic("numbers", 3)])["numbers"].result(20)
    shared = tmp_path / "shared"
    shared.mkdir()
    first, second, *workers = (machines.add(shared) for _ in range(4))
    state = f"kafka:{kafka.address}/moves"
    pipeline = OPERATORS + FROM_KAFKA % (kafka.address, SHARED, SHARED)
    jars = ",".join(map(str, sorted(SPARK_JARS.glob("*.jar"))))
    over = threading.Event()
    feeder = threading.Thread(target=feed, args=(kafka.address, over))
    with StandaloneCluster(tmp_path / "spark", workers, 10, host=machines.address) as cluster:
        options = ["--master", cluster.master, "--checkpoint", str(SHARED / "checkpoint")]
        options += ["--conf", f"spark.jars={jars}"]
        feeder.start()
        try:
            with running(first, pipeline, state, *options) as run:
                wait_until_processed(EVENTS // 4, state, run)
                assert "mount it wherever the driver may be started" in run.log()
                first.kill()
            assert processed(state) < EVENTS
            assert first.path(DISK / "work" / "mine.py").exists()
            with running(second, pipeline, state, *options) as run:
                wait_until_processed(EVENTS, state, run)
                eventually(lambda: len(written(shared / "out")) >= EVENTS, PATIENCE)
                run.send_signal(signal.SIGINT)
                assert run.wait(PATIENCE) == 0, run.log()
        finally:
            over.set()
            feeder.join()
    assert written(shared / "out") == [(n, 2 * n) for n in range(EVENTS)]
    assert processed(state) == processed(state, "check") == EVENTS


@pytest.mark.parametrize("fate", ["dies", "is cut off"])
def test_a_worker_whose_machine_is_gone_takes_nothing_with_it(machines, kafka, tmp_path, fate):
    driver, *workers = (machines.add() for _ in range(3))
    state = f"kafka:{kafka.address}/lost"
    trace = driver.path(DISK / "trace.csv")
    rates = [100] * (EVENTS // 100) + [0] * 4
    trace.write_text("time,value\n" + "".join(f"{n},{rate}\n" for n, rate in enumerate(rates)))
    with (
        StandaloneCluster(tmp_path / "spark", workers, 8, host=machines.address) as cluster,
        running(
            *(driver, OPERATORS + FROM_A_TRACE, state, "--master", cluster.master),
            *("--trace", str(DISK / "trace.csv"), "--initial", "2"),
        ) as run,
    ):
        wait_until_processed(EVENTS // 4, state, run)
        with open_backend(state).connect() as connection:
            victim = max(workers, key=lambda one: len(lanes_of(one.processes, connection)))
            gone = victim.processes
            assert lanes_of(gone, connection)
            began = time.monotonic()
            if fate == "dies":
                victim.kill()
                eventually(lambda: not lanes_of(gone, connection), MOVE_SECONDS)
                log.info("lanes moved within %.1f s", time.monotonic() - began)
            else:
                victim.cut()
                time.sleep(CUT_SECONDS)
                log.info("%d lanes are still there", len(lanes_of(gone, connection)))
                victim.mend()
        assert run.wait(PATIENCE) == 0, run.log()
    assert processed(state) == processed(state, "check") == EVENTS
    assert not any(totals(state).waiting(name) for name in ("check", "double"))
