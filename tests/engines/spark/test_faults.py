"""Everything that can be killed is killed, and every event comes out once and in its order."""

import csv
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, contextmanager

import pytest

from elastream.engines.spark.backends import open_backend
from support import fault_driver
from support.fault_driver import KEYS
from support.processes import Process, descendants
from support.waiting import eventually

EVENTS = {"sqlite": 4_000, "sqlite, long": 20_000, "kafka": 20_000}
REPLICAS_KILLED = 10
PAUSE_SECONDS = 2.5
"""Longer than a hand-over: lanes of one that is paused are taken by force."""
PATIENCE = 300.0
DAEMON = "elastream.engines.spark.worker.daemon"


def kill_everything(driver):
    """As when the machine's memory is gone: all at once."""
    below = descendants(driver.pid)
    driver.kill()
    for process in below:
        process.kill()


def kill_the_driver_alone(driver):
    """Spark finds out by itself, and ends its workers in its own time."""
    driver.kill()


def kill_all_but_the_workers(driver):
    """Nobody is left to end the workers: they work on for a while."""
    below = descendants(driver.pid)
    workers = workers_among(below)
    assert workers
    assert not [p for p in below if p.number in workers and "java" in p.command.split("\0")[0]]
    driver.kill()
    for process in below:
        if process.number not in workers:
            process.kill()


def workers_among(processes):
    """The numbers of those that are workers: forked by the daemon, whose command they have.

    The Java process has the name of the daemon's module in its command, too, as a setting.
    """
    alike = {p.number: p.parent for p in processes if f"\0-m\0{DAEMON}\0" in p.command}
    return {number for number, parent in alike.items() if parent in alike}


def test_only_workers_are_taken_for_workers():
    daemon = f"python\0-m\0{DAEMON}\0pyspark.worker\0"
    java = f"/usr/bin/java\0--conf\0spark.python.daemon.module={DAEMON}\0"
    tree = [
        Process(1, 0, 0, java),
        Process(2, 0, 1, daemon),
        Process(3, 0, 2, daemon),
        Process(4, 0, 2, daemon),
    ]
    assert workers_among(tree) == {3, 4}


ENDS = (kill_everything, kill_the_driver_alone, kill_all_but_the_workers)


@contextmanager
def running_driver(folder, events, state, log):
    command = [sys.executable, fault_driver.__file__, str(folder), str(events), state]
    driver = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield driver
    finally:
        kill_everything(driver)
        driver.wait()


def processed(state):
    counts = state.ledger.totals().counts
    return sum(of.processed for (name, _), of in counts.items() if name == "store")


def eventually_while(driver, condition):
    """Wait until it is true, while the driver runs."""

    def true_and_running():
        found = condition()
        assert found or driver.poll() is None, "the driver ended by itself"
        return found

    return eventually(true_and_running, PATIENCE)


def wait_until_processed(events, state, driver):
    eventually_while(driver, lambda: processed(state) >= events)


def some_replica(state, choose, driver):
    """One that is alive."""

    def replicas():
        below = {process.number: process for process in descendants(driver.pid)}
        members = sorted(state.board.members().items())
        return [below[of.pid] for _, of in members if of.pid in below]

    return choose.choice(eventually_while(driver, replicas))


def pause(process):
    """Stop a process, and let it go on when its lanes may be others'."""

    def send(what):
        if process.alive:
            os.kill(process.number, what)

    send(signal.SIGSTOP)
    timer = threading.Timer(PAUSE_SECONDS, send, [signal.SIGCONT])
    timer.daemon = True
    timer.start()
    return timer


@pytest.fixture(
    params=["sqlite", pytest.param("sqlite, long", marks=pytest.mark.long), "kafka"],
)
def place(request, tmp_path):
    """A state, how many events go through it, and what can be killed besides."""
    if request.param != "kafka":
        return str(tmp_path / "state"), EVENTS[request.param], lambda: None
    cluster = request.getfixturevalue("own_kafka_cluster")
    (broker,) = cluster.brokers

    def kill_the_broker():
        broker.kill()
        broker.start()
        cluster.wait()

    state = f"kafka:{cluster.address}/faults"
    return state, EVENTS["kafka"], kill_the_broker


def test_every_event_comes_out_once_and_in_order_whatever_is_killed(tmp_path, place):
    url, events, kill_the_broker = place
    fault_driver.prepare(tmp_path, events)
    choose = random.Random(7)
    # After so many events a replica is killed and another one paused, and after every third time
    # the driver is killed.
    moments = [events * (n + 1) // (REPLICAS_KILLED + 4) for n in range(REPLICAS_KILLED + 3)]
    lives = [moments[0:4], moments[4:8], moments[8:12], moments[12:]]
    orphans, timers = set(), []
    with ExitStack() as ends:
        log = ends.enter_context(open(tmp_path / "log", "w"))
        state = None
        for life, end in zip(lives, (*ENDS, None), strict=True):
            with running_driver(tmp_path, events, url, log) as driver:
                if state is None:
                    eventually_while(driver, lambda: open_backend(url).exists)
                    state = ends.enter_context(open_backend(url).connect())
                for moment in life[:-1] if end else life:
                    wait_until_processed(moment, state, driver)
                    # Nobody waits for the one that takes its place.
                    some_replica(state, choose, driver).kill()
                    timers.append(pause(some_replica(state, choose, driver)))
                kill_the_broker()
                if end:
                    wait_until_processed(life[-1], state, driver)
                    orphans |= set(descendants(driver.pid))
                    end(driver)
                    driver.wait()
                else:
                    (tmp_path / "last").touch()
                    driver.wait(PATIENCE)
        for timer in timers:
            timer.join()
        assert (tmp_path / "done").exists(), (tmp_path / "log").read_text()[-3000:]
        totals = state.ledger.totals()
        assert list(state.dead_letters.read()) == []
    numbers = list(range(events))
    with open(tmp_path / "done.csv") as file:
        assert sorted(int(row["id"]) for row in csv.DictReader(file)) == numbers
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        assert [n for (n,) in db.execute("SELECT id FROM stored ORDER BY id")] == numbers
        tried = [n for (n,) in db.execute("SELECT id FROM tried ORDER BY number")]
    for operator in ("work", "store", "audit"):
        counted = (of.processed for (name, _), of in totals.counts.items() if name == operator)
        assert sum(counted) == events
    assert not any(lane.waiting for lanes in totals.lanes.values() for lane in lanes.values())
    assert_in_order(tried, events)
    eventually(lambda: not [process for process in orphans if process.alive])


def assert_in_order(tried, events):
    """Of every key, and every source, events came to the last operator in the source's order.

    One that was done again came again; what counts is when it came first.
    """
    first = list(dict.fromkeys(tried))
    for source in (range(events // 2), range(events // 2, events)):
        for key in range(KEYS):
            mine = [number for number in first if number in source and number % KEYS == key]
            assert mine == sorted(mine)


def test_a_worker_without_a_parent_ends():
    code = (
        "import os, sys, time\n"
        "from elastream.engines.spark.worker import pool\n"
        "pool.PARENT_LOOK_SECONDS = 0.05\n"
        "if os.fork() == 0:\n"
        "    pool.exit_with_parent()\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "else:\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()
        (worker,) = descendants(parent.pid)
        parent.kill()
    eventually(lambda: not worker.alive)


@pytest.fixture(autouse=True)
def _only_where_there_is_proc():
    if not sys.platform.startswith("linux"):
        pytest.skip("it finds processes in /proc")
