"""What is particular about the backend on Kafka; what every backend must do is in contracts."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from elastream.cli import app
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.base import Ownership
from elastream.engines.spark.backends.kafka import KafkaBackend, housekeeping, topics
from elastream.engines.spark.backends.kafka.clients import Place
from elastream.engines.spark.backends.kafka.commands import apply
from elastream.engines.spark.backends.kafka.housekeeping import Housekeeping
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.errors import EngineError, InvalidInputError
from support.kafka.broker import Cluster
from support.kafka.old import old_broker

LANES = {"b": OperatorLanes(2), "c": OperatorLanes(2)}


@pytest.fixture
def state(kafka_cluster, request):
    """A new state on the broker, removed in the end."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    backend = open_backend(f"kafka:{kafka_cluster.address}/{name}")
    backend.prepare("test", LANES)
    yield backend
    backend.remove()


def parcel(numbers, lane=0, operator="b"):
    numbers = list(numbers)
    data = to_bytes(pa.table({"n": numbers}))
    return Parcel(operator, lane, len(numbers), Births.evenly(len(numbers), 1.0), data)


def joined(backend, operator, number=0, lanes=(0, 1)):
    end = backend.connect()
    end.lanes.join((operator, number), 1)
    if operator != "a":
        end.lanes.hold(frozenset(lanes))
    return end


def numbers(taken):
    return [n for each in taken for n in from_bytes(each.data)["n"].to_pylist()]


def move_on(end, to="c", most=1000):
    """Take all there is, and send it on; the numbers."""
    seen = []
    while taken := end.lanes.take(most):
        moved = numbers(taken)
        assert end.lanes.commit(taken, [parcel(moved, operator=to)], Counts(len(moved)))
        seen += moved
    return seen


def first_offsets(place, topic, partitions):
    with closing(place.consumer()) as consumer:
        return [
            consumer.get_watermark_offsets(TopicPartition(topic, part), 10, cached=False)[0]
            for part in range(partitions)
        ]


def test_a_newcomer_begins_with_a_snapshot_and_the_journal_is_cut(state, monkeypatch):
    monkeypatch.setattr(housekeeping, "RECORDS_PER_SNAPSHOT", 10)
    keeper = Housekeeping(state.place, "me", Ownership())
    with joined(state, "a") as producer, closing(Journal(state.place)) as journal:
        lagging = Journal(state.place)
        for round_ in range(3):
            for n in range(10):
                producer.lanes.commit([], [parcel([10 * round_ + n])], Counts(emitted=1))
            keeper.tidy(journal)
        assert first_offsets(state.place, state.place.topic(topics.JOURNAL), 1)[0] > 10
        assert lagging.sync().counted["a", 0].counts.emitted == 30, "it was overtaken by the cut"
        lagging.close()
        producer.lanes.commit([], [parcel([30])], Counts(emitted=1))
    with joined(state, "b") as end:
        assert move_on(end) == list(range(31))
        assert end.ledger.counts(("a", 0)).emitted == 31


def test_a_read_that_is_interrupted_leaves_nothing_out(state, monkeypatch):
    seen = []

    def interrupted(*command):
        seen.append(command)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return apply(*command)

    with joined(state, "a") as producer, closing(Journal(state.place)) as journal:
        for n in range(10):
            producer.lanes.commit([], [parcel([n])], Counts(emitted=1))
        monkeypatch.setattr("elastream.engines.spark.backends.kafka.journal.apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.sync()
        assert journal.sync().counted["a", 0].counts.emitted == 10


def test_what_is_consumed_is_deleted_and_what_waits_is_not(state):
    keeper = Housekeeping(state.place, "me", Ownership())
    with joined(state, "a") as producer, joined(state, "b") as end:
        with closing(Journal(state.place)) as journal:
            for n in range(6):
                producer.lanes.commit([], [parcel([n], lane=n % 2)], Counts())
            taken = end.lanes.take(3)
            assert end.lanes.commit(taken, [], Counts())
            keeper.tidy(journal)
            keeper.tidy(journal)
        topic = topics.topic_of(state.place, "b")
        assert first_offsets(state.place, topic, 2) == [2, 1]
        assert move_on(end) == [3, 4, 5]


def test_a_commit_whose_records_are_deleted_meanwhile_stores_them_again(state):
    with joined(state, "a") as producer, closing(Journal(state.place)) as journal:
        write = producer.lanes.journal.write_all
        trimmed = []

        def slow(records, key=None):
            offsets = write(records, key)
            if not trimmed and records[0][0] == topics.topic_of(state.place, "b"):
                trimmed.append(offsets)
                journal.append("trim", upto=[(records[0][0], records[0][1], offsets[0] + 1)])
            return offsets

        producer.lanes.journal.write_all = slow
        assert producer.lanes.commit([], [parcel([1, 2])], Counts())
        assert trimmed
    with joined(state, "b") as end:
        assert move_on(end) == [1, 2]


def _work(url, replica):
    with joined(open_backend(url), "b", replica, [replica]) as end:
        move_on(end, most=5)


def test_processes_that_work_side_by_side_lose_nothing_and_do_nothing_twice(state):
    with joined(state, "a") as producer:
        for n in range(60):
            producer.lanes.commit([], [parcel([2 * n], 0), parcel([2 * n + 1], 1)], Counts())
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_work, args=(state.url, number)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    with joined(state, "c") as end:
        assert sorted(move_on(end, "d")) == list(range(120))


def test_a_broker_that_is_killed_and_comes_back_loses_nothing_and_does_nothing_twice(
    own_kafka_cluster,
):
    (broker,) = own_kafka_cluster.brokers
    state = open_backend(f"kafka:{own_kafka_cluster.address}/killed")
    state.prepare("test", LANES)
    with joined(state, "a") as producer, joined(state, "b") as end:
        producer.lanes.commit([], [parcel([0])], Counts())

        def send():
            for n in range(1, 40):
                assert producer.lanes.commit([], [parcel([n], n % 2)], Counts(emitted=1))

        with ThreadPoolExecutor(1) as sender:
            sending = sender.submit(send)
            broker.kill()
            broker.start()
            own_kafka_cluster.wait()
            sending.result()
        assert sorted(move_on(end)) == list(range(40))
        assert end.ledger.counts(("a", 0)).emitted == 39


OWNS = """
import sys, time
from elastream.engines.spark.backends import open_backend
with open_backend(sys.argv[1]).own():
    print("mine", flush=True)
    time.sleep(600)
"""


LEARNS = """
import sys, time
from elastream.engines.spark.backends import open_backend
with open_backend(sys.argv[1]).own() as ownership:
    print("mine", flush=True)
    ends = time.monotonic() + 60
    while not ownership.lost and time.monotonic() < ends:
        time.sleep(0.1)
    print(ownership.lost, flush=True)
"""


def test_a_driver_that_was_killed_owns_nothing_after_a_while(state):
    command = [sys.executable, "-c", OWNS, state.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as driver:
        assert driver.stdout.readline() == b"mine\n"
        in_use = rf"in use by process {driver.pid} on .* since"
        with pytest.raises(InvalidInputError, match=in_use), state.own():
            raise AssertionError("both own it")
        os.kill(driver.pid, signal.SIGKILL)
    with state.own():
        pass


def test_a_driver_that_was_stopped_for_too_long_learns_that_another_has_taken_over(state):
    with subprocess.Popen([sys.executable, "-c", LEARNS, state.url], stdout=subprocess.PIPE) as old:
        assert old.stdout.readline() == b"mine\n"
        os.kill(old.pid, signal.SIGSTOP)
        with state.own() as new:
            os.kill(old.pid, signal.SIGCONT)
            told = old.stdout.readline().decode()
            assert "another driver has taken over the state" in told
            assert f"process {os.getpid()} on" in told
            assert not new.lost


def test_a_state_can_be_removed(kafka_cluster):
    backend = open_backend(f"kafka:{kafka_cluster.address}/gone")
    backend.prepare("test", LANES)
    assert topics.topic_of(backend.place, "b") in backend.remove()
    assert not backend.exists
    with pytest.raises(InvalidInputError, match="no run has used it, or it was removed"):
        backend.connect()


def test_clean_removes_a_state_that_nobody_uses(state):
    with state.own():
        refused = CliRunner().invoke(app, ["clean", state.url, "--yes"])
        assert isinstance(refused.exception, InvalidInputError)
        assert "is in use by process" in str(refused.exception)
    kept = CliRunner().invoke(app, ["clean", state.url], input="n\n")
    assert (kept.exit_code, state.exists) == (1, True)
    done = CliRunner().invoke(app, ["clean", state.url, "--yes"])
    assert f"removed {state.place.topic(topics.JOURNAL)}" in done.output
    assert not state.exists


# What cannot work.


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("kafka:localhost:9092", r"write kafka:HOST:PORT/NAME"),
        ("kafka:localhost/orders", r"write kafka:HOST:PORT/NAME"),
        ("kafka:localhost:9092/my orders", r"'my orders' begins the names of topics"),
        ("kafka:localhost:9092/shop.lanes", r"a part 'lanes', which the topics of another"),
        ("kafka:localhost:9092/orders?acks=1", r"cannot be given acks"),
        ("kafka:localhost:9092/orders?replication=many", r"replication=many"),
        ("kafka:localhost:9092/orders?checkpoints=here", r"with --checkpoint, or checkpoint= in"),
    ],
)
def test_a_url_that_names_no_place_is_refused(url, problem):
    with pytest.raises(InvalidInputError, match=problem):
        open_backend(url)


def test_where_nobody_answers_it_is_said(monkeypatch):
    monkeypatch.setattr(topics, "PATIENCE", 0.5)
    with pytest.raises(InvalidInputError, match=r"no Kafka broker answers at 127\.0\.0\.1:1 "):
        open_backend("kafka:127.0.0.1:1/orders").prepare("test", LANES)


def test_a_broker_that_is_too_old_is_refused():
    with old_broker() as address:
        backend = open_backend(f"kafka:{address}/orders")
        with pytest.raises(EngineError, match=r"too old for making .* Kafka 3\.0 or newer"):
            backend.prepare("test", LANES)


def test_topics_of_something_else_are_left_alone(kafka_cluster):
    admin = AdminClient({"bootstrap.servers": kafka_cluster.address, "log_level": 0})
    admin.create_topics([NewTopic("taken.journal", 3)])["taken.journal"].result(20)
    with pytest.raises(InvalidInputError, match=r"taken\.journal has 3 partitions"):
        open_backend(f"kafka:{kafka_cluster.address}/taken").prepare("test", LANES)


def test_only_the_topics_of_a_state_are_removed_with_it(kafka_cluster):
    admin = AdminClient({"bootstrap.servers": kafka_cluster.address, "log_level": 0})
    admin.create_topics([NewTopic("shop.orders", 1)])["shop.orders"].result(20)
    one, other = (open_backend(f"kafka:{kafka_cluster.address}/{n}") for n in ("shop", "shop.eu"))
    for backend in (one, other):
        backend.prepare("test", LANES)
    removed = one.remove()
    assert topics.topic_of(one.place, "b") in removed
    assert other.exists
    assert "shop.orders" in admin.list_topics(timeout=20).topics
    other.remove()


def test_more_copies_than_brokers_are_refused(kafka_cluster):
    backend = open_backend(f"kafka:{kafka_cluster.address}/copies?replication=3")
    with pytest.raises(InvalidInputError, match=r"cannot have 3 copies"):
        backend.prepare("test", LANES)


# Secrets.


def test_secrets_stay_in_their_file(tmp_path: Path, kafka_cluster: Cluster):
    file = tmp_path / "kafka.properties"
    file.write_text("# ours\nsasl.password=hush\nclient.rack = here\n")
    backend = open_backend(f"kafka:{kafka_cluster.address}/secret?settings={file}")
    assert backend.place._secrets() == {"sasl.password": "hush", "client.rack": "here"}
    for shown in (repr(backend), backend.url, str(pickle.dumps(backend))):
        assert "hush" not in shown
    assert open_backend(backend.url) == backend
    backend.prepare("test", LANES)
    backend.remove()


def test_settings_that_cannot_be_read_are_refused_without_showing_them(tmp_path: Path):
    missing = KafkaBackend(Place("localhost:9092", "x", settings=str(tmp_path / "none")))
    with pytest.raises(InvalidInputError, match="cannot be read: No such file"):
        missing.connect()
    (tmp_path / "bad").write_text("security.protocol=SSL\nhush\n")
    bad = KafkaBackend(Place("localhost:9092", "x", settings=str(tmp_path / "bad")))
    with pytest.raises(InvalidInputError, match="line 2: write NAME=VALUE") as refusal:
        bad.connect()
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize(("mode", "owner"), [(0o602, None), (0o600, 12345)])
def test_settings_that_others_could_change_are_refused(tmp_path: Path, mode, owner):
    file = tmp_path / "settings"
    file.write_text("security.protocol=PLAINTEXT\n")
    file.chmod(mode)
    if owner is not None:
        if os.geteuid():
            pytest.skip("only root can give a file to somebody else")
        os.chown(file, owner, -1)
    backend = KafkaBackend(Place("localhost:9092", "x", settings=str(file)))
    with pytest.raises(InvalidInputError, match="settings could be changed by others: make the"):
        backend.connect()
