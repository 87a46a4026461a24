"""Brokers, networks and processes that fail in the middle of work: nothing lost, nothing twice."""

import multiprocessing
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pyarrow as pa
import pytest

from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from support.cuttable import Relay
from support.kafka.broker import Cluster, free_ports, skip_without_kafka

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("kafka")]
LANES = {"b": OperatorLanes(2), "c": OperatorLanes(2)}
CUT_SECONDS = 10.0


def parcel(number, operator="b"):
    data = to_bytes(pa.table({"n": [number]}))
    return Parcel(operator, number % 2, 1, Births.evenly(1, 1.0), data)


BOTH = frozenset((0, 1))


def joined(state, operator, number=0, *, by_force=frozenset()):
    end = open_backend(state).connect()
    end.lanes.join((operator, number), 1)
    if operator != "a":
        end.lanes.hold(BOTH, by_force)
    return end


def numbers(taken):
    return [n for each in taken for n in from_bytes(each.data)["n"].to_pylist()]


def all_of(end):
    """Take everything that waits, a few at a time."""
    seen = []
    while taken := end.lanes.take(5):
        assert end.lanes.commit(taken, [], Counts(sum(each.events for each in taken)))
        seen += numbers(taken)
    return seen


def test_one_of_three_brokers_is_killed(tmp_path):
    skip_without_kafka()
    with Cluster(tmp_path / "kafka", size=3) as cluster:
        state = f"kafka:{cluster.address}/three?replication=3"
        open_backend(state).prepare("test", LANES)
        with joined(state, "a") as producer, joined(state, "b") as end:

            def send():
                for n in range(60):
                    assert producer.lanes.commit([], [parcel(n)], Counts(emitted=1))

            with ThreadPoolExecutor(1) as sender:
                sending = sender.submit(send)
                while end.ledger.counts(("a", 0)).emitted < 5:
                    sleep(0.05)
                cluster.brokers[0].kill()
                sending.result()
            assert sorted(all_of(end)) == list(range(60))
            assert end.ledger.counts(("a", 0)).emitted == 60


def test_a_network_that_is_cut_between_a_worker_and_the_broker(tmp_path):
    """Its lanes are taken from it meanwhile; what it had at work is refused when it is back."""
    skip_without_kafka()
    (inner,) = free_ports(1)
    with Relay(f"http://127.0.0.1:{inner}") as relay:
        outer = int(relay.url.rpartition(":")[2])
        with Cluster(tmp_path / "kafka", relayed=(inner, outer)) as cluster:
            direct, relayed = (
                f"kafka:{address}/cut" for address in (cluster.address, f"127.0.0.1:{outer}")
            )
            open_backend(direct).prepare("test", LANES)
            with joined(direct, "a") as producer, joined(relayed, "b", 0) as cut_off:
                for n in range(10):
                    assert producer.lanes.commit([], [parcel(n)], Counts(emitted=1))
                at_work = cut_off.lanes.take(5)
                assert numbers(at_work)
                with ThreadPoolExecutor(1) as thread:
                    relay.cut()
                    late = thread.submit(
                        cut_off.lanes.commit, at_work, [parcel(99, "c")], Counts(len(at_work))
                    )
                    with joined(direct, "b", 1, by_force=BOTH) as successor:
                        assert sorted(all_of(successor)) == list(range(10))
                    sleep(CUT_SECONDS)
                    assert not late.done(), "it waits for the broker"
                    relay.mend()
                    assert late.result() is False
                assert cut_off.ledger.totals().waiting("c") == 0


def _dies_before_it_commits(state):
    producer = joined(state, "a")

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    producer.lanes.journal.append = die
    producer.lanes.commit([], [parcel(0)], Counts(emitted=1))


def test_a_producer_that_is_killed_between_storing_and_committing(kafka_cluster):
    state = f"kafka:{kafka_cluster.address}/killed-producer"
    open_backend(state).prepare("test", LANES)
    producer = multiprocessing.get_context("spawn").Process(
        target=_dies_before_it_commits, args=(state,)
    )
    producer.start()
    producer.join()
    assert producer.exitcode == -signal.SIGKILL
    with joined(state, "b") as end:
        assert all_of(end) == []
        with joined(state, "a") as successor:
            assert successor.lanes.commit([], [parcel(0)], Counts(emitted=1))
        assert all_of(end) == [0]
        assert end.ledger.counts(("a", 0)).emitted == 1
    open_backend(state).remove()
