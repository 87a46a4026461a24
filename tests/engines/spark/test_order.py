"""Keys keep their order, and every event comes out once, whatever plans and processes do."""

import multiprocessing
import os
import random
import signal
import time
from contextlib import closing

import pyarrow as pa
import pytest

from elastream.core.lanes import lanes_of_keys
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.base import Counts, LanePlan, Parcel
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.births import Births
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.deployment import Deployment
from support.waiting import eventually
from support.workers import run_member

OPERATORS = ("first", "second")
POOL, LANES, KEYS = 2, 8, 12
ROUNDS, PER_ROUND, ROUND_SECONDS = 40, 20, 0.1
PAUSE_ROUNDS = 15
"""In rounds: longer than a hand-over."""

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["support.workers", "elastream.engines.spark.backends.sqlite"])


def topology():
    def work(table):
        time.sleep(0.002 * table.num_rows)
        return table

    pipeline = Pipeline("order")
    previous = pipeline.source("in")
    for name in OPERATORS:
        pipeline.add(
            work, after=previous, name=name, pool=POOL, lanes=LANES, grouping="key", key="user"
        )
        previous = name
    return pipeline.topology()


class Run:
    """Processes for all replicas, over a state folder, and a driver that has no mercy."""

    def __init__(self, folder, seed):
        self.choose = random.Random(seed)
        self.backend = SqliteBackend(folder / "state")
        self.deployment = Deployment(
            topology(), {}, Options(), self.backend, frozenset({OPERATORS[-1]})
        )
        self.backend.prepare("order", self.deployment.layout)
        self.connection = self.backend.connect()
        self.board = self.connection.board
        self.connection.lanes.join(("in", 0), 1_000)
        self.roles = [(name, number) for name in OPERATORS for number in range(POOL)]
        self.processes, self.all = {}, []
        self.sent = 0
        self.next_generation()

    def next_generation(self):
        """The next processes get ready while the last ones work, and then take over."""
        self.generation = self.board.new_generation(self.roles)
        for role in self.roles:
            self.start(role)
        eventually(lambda: self.board.ready(self.generation) == set(self.roles))
        self.board.start(self.generation)

    def start(self, role):
        arguments = self.deployment.to_text(), role, self.generation
        process = CONTEXT.Process(target=run_member, args=arguments, daemon=True)
        process.start()
        self.processes[role] = process
        self.all.append(process)

    def some_role(self):
        return self.choose.choice(self.roles)

    def change_plan(self):
        owners = {
            name: tuple(self.choose.randrange(POOL) for _ in range(LANES)) for name in OPERATORS
        }
        active = {name: tuple(sorted(set(of))) for name, of in owners.items()}
        self.board.publish(LanePlan(active, owners))

    def send(self, events):
        numbers = list(range(self.sent, self.sent + events))
        users = [self.choose.randrange(KEYS) for _ in numbers]
        table = pa.table({"n": numbers, "user": users})
        births = Births.evenly(events, time.time())
        parcel = Parcel.for_lanes("first", lanes_of_keys(users, LANES), births, to_bytes(table))
        assert self.connection.lanes.commit([], [parcel], Counts())
        self.sent += events

    def kill(self, role):
        self.processes[role].kill()
        self.processes[role].join()
        self.start(role)

    def signal(self, process, what):
        if process.is_alive():
            os.kill(process.pid, what)

    def output(self):
        with closing(self.backend.outbox(OPERATORS[-1])) as outbox:
            found = [from_bytes(data) for data in outbox.read(0, outbox.newest())]
        return [row for table in found for row in table.to_pylist()]

    def close(self):
        self.board.dismiss()
        for process in self.all:
            self.signal(process, signal.SIGCONT)
        for process in self.all:
            process.join(10)
            process.kill()
            process.join()
        self.connection.close()
        self.backend.sweep()


@pytest.mark.parametrize("seed", [1, 2])
def test_every_key_keeps_its_order_and_every_event_comes_out_once(tmp_path, seed):
    run = Run(tmp_path, seed)
    paused = {}
    try:
        for turn in range(ROUNDS):
            run.change_plan()
            run.send(PER_ROUND)
            if turn % 12 == 5:
                run.kill(run.some_role())
            if turn % 10 == 2:
                zombie = run.processes[run.some_role()]
                run.signal(zombie, signal.SIGSTOP)
                paused[zombie] = turn
            for zombie in [each for each, since in paused.items() if turn - since > PAUSE_ROUNDS]:
                run.signal(zombie, signal.SIGCONT)
                del paused[zombie]
            if turn == ROUNDS // 2:
                run.next_generation()
            time.sleep(ROUND_SECONDS)
        for zombie in paused:
            run.signal(zombie, signal.SIGCONT)
        eventually(lambda: len(run.output()) >= run.sent)
        found = run.output()
        totals = run.connection.ledger.totals()
    finally:
        run.close()
    assert sorted(row["n"] for row in found) == list(range(run.sent))
    for user in range(KEYS):
        mine = [row["n"] for row in found if row["user"] == user]
        assert mine == sorted(mine)
    for operator in OPERATORS:
        assert totals.waiting(operator) == 0
        counted = (of.processed for (name, _), of in totals.counts.items() if name == operator)
        assert sum(counted) == run.sent
