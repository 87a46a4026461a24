"""Everything that can be killed is killed, and every event comes out once."""

import csv
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest
from tests.support import fault_driver
from tests.support.fault_driver import EVENTS
from tests.support.processes import descendants

from elastream.engines.spark.backends.sqlite import SqliteTransport

REPLICAS_KILLED = 10
PATIENCE = 120.0


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
    daemons = {process.number for process in below if "spark.daemon" in process.command}
    driver.kill()
    for process in below:
        if process.parent not in daemons:
            process.kill()


ENDS = (kill_everything, kill_the_driver_alone, kill_all_but_the_workers)


@contextmanager
def running_driver(folder, log):
    driver = subprocess.Popen(
        [sys.executable, fault_driver.__file__, str(folder)], stdout=log, stderr=log
    )
    try:
        yield driver
    finally:
        kill_everything(driver)
        driver.wait()


def processed(transport):
    counts = transport.totals().counts
    return sum(of.processed for (name, _), of in counts.items() if name == "store")


def eventually(condition, driver):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert driver.poll() is None, "the driver ended by itself"
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def kill_a_replica(transport, choose, driver):
    """Kill one that is alive; nobody waits for the one that takes its place."""

    def replicas():
        below = {str(process.number): process for process in descendants(driver.pid)}
        owners = sorted(transport.members().items())
        return [below[word] for _, owner in owners if (word := owner.split(":")[0]) in below]

    eventually(replicas, driver)
    choose.choice(replicas()).kill()


def test_every_event_comes_out_once_whatever_is_killed(tmp_path):
    fault_driver.prepare(tmp_path)
    choose = random.Random(7)
    # After so many events a replica is killed, and after every third one the driver.
    moments = [EVENTS * (n + 1) // (REPLICAS_KILLED + 4) for n in range(REPLICAS_KILLED + 3)]
    lives = [moments[0:4], moments[4:8], moments[8:12], moments[12:]]
    orphans = set()
    with (
        closing(SqliteTransport(tmp_path / "state")) as transport,
        open(tmp_path / "log", "w") as log,
    ):
        for life, end in zip(lives, (*ENDS, None), strict=True):
            with running_driver(tmp_path, log) as driver:
                for moment in life[:-1] if end else life:
                    eventually(lambda moment=moment: processed(transport) >= moment, driver)
                    kill_a_replica(transport, choose, driver)
                if end:
                    eventually(lambda moment=life[-1]: processed(transport) >= moment, driver)
                    orphans |= set(descendants(driver.pid))
                    end(driver)
                    driver.wait()
                else:
                    driver.wait(PATIENCE)
        assert (tmp_path / "done").exists(), (tmp_path / "log").read_text()[-3000:]
        totals = transport.totals()
        assert list(transport.dead_letters()) == []
    numbers = list(range(EVENTS))
    with open(tmp_path / "done.csv") as file:
        assert sorted(int(row["id"]) for row in csv.DictReader(file)) == numbers
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        assert [n for (n,) in db.execute("SELECT id FROM stored ORDER BY id")] == numbers
    assert sum(of.processed for (name, _), of in totals.counts.items() if name == "store") == EVENTS
    assert not any(totals.queued.values())
    assert not [process for process in orphans if process.alive]


def test_a_worker_without_a_parent_ends(tmp_path):
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
    deadline = time.monotonic() + 20
    while worker.alive:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def _only_where_there_is_proc():
    if not sys.platform.startswith("linux"):
        pytest.skip("it finds processes in /proc")
