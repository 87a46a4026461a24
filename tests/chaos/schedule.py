"""A schedule of faults with a seed: what happens when, and to whom, is the same every time.

    python -m tests.chaos.schedule --seed 7 --seconds 600 --grouping key

runs a long one by hand and logs every act.
"""

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.support.local_pool import LocalPool

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.driver.placement import Placement
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.trace_player import TraceSource

KEYS, POOL = 23, 3
PLAN_SECONDS = 0.1
PAUSE_SECONDS = 1.5
"""Longer than a hand-over takes."""
PATIENCE = 90.0


def make(first, count):
    numbers = np.arange(first, first + count)
    return pa.table({"id": numbers, "key": numbers % KEYS})


def work(table):
    time.sleep(0.0005 * table.num_rows)
    return table


def deployment_of(folder, grouping, rate, seconds, chain=False):
    """Two operators in a line, whose output is kept in its order; they may share replicas."""
    settings = {"grouping": grouping, "pool": POOL} | ({"key": "key"} if grouping == "key" else {})
    pipeline = Pipeline("chaos")
    pipeline.add(work, after=pipeline.source("in"), name="first", **settings)
    pipeline.add(work, after="first", name="second", chain=chain, **settings)
    trace = TraceSource(make, 1.0, np.full(seconds, float(rate)))
    backend = open_backend(folder)
    outputs = frozenset({"second"})
    return Deployment(pipeline.topology(), {"in": trace}, Options(), backend, outputs)


@dataclass
class Chaos:
    """A run with faults.

    Args:
        folder: For the state.
        seed: Of the schedule.
        grouping: Of both operators.
        rate: Events per second.
        seconds: How long events come.
        faults: How many, besides plans.
        chain: Whether the operators share replicas.
    """

    folder: Path
    seed: int
    grouping: str = "key"
    rate: int = 400
    seconds: int = 6
    faults: int = 8
    chain: bool = False
    log: list[str] = field(default_factory=list)

    @property
    def events(self):
        return self.rate * self.seconds

    def run(self):
        """The ids that came out, in the order in which they did."""
        given = self.grouping, self.rate, self.seconds, self.chain
        deployment = deployment_of(self.folder, *given)
        backend = deployment.backend
        backend.prepare("chaos", deployment.layout)
        with ExitStack() as stack:
            connection = stack.enter_context(backend.connect())
            board = connection.board
            self._pools = [self._generation(board, deployment)]
            stack.callback(lambda: [pool.close() for pool in self._pools])
            stack.callback(board.dismiss)
            placing = stack.enter_context(backend.connect())
            placement = Placement(
                deployment.chains.topology,
                deployment.layout,
                placing.board,
                placing.ledger.totals,
            )
            self._play(placement, board, deployment)
            return self._output(backend)

    def _generation(self, board, deployment):
        """Workers that are ready to begin, and begin."""
        number = board.new_generation(deployment.members)
        pool = LocalPool(deployment, number)
        deadline = time.monotonic() + PATIENCE
        while len(board.ready(number)) < len(deployment.members):
            assert time.monotonic() < deadline, "the workers did not get ready"
            time.sleep(0.02)
        board.start(number)
        self._note(f"generation {number}")
        return pool

    def _play(self, placement, board, deployment):
        choose = random.Random(self.seed)
        names = list(deployment.chains.topology.by_name)
        begun = time.monotonic()
        moments = sorted(choose.uniform(0.5, self.seconds) for _ in range(self.faults))
        acts = [choose.choice([self._kill, self._pause, self._kill, self._renew]) for _ in moments]
        while time.monotonic() - begun < self.seconds:
            placement.want({name: choose.randint(1, POOL) for name in names})
            placement.review()
            while moments and time.monotonic() - begun > moments[0]:
                moments.pop(0)
                acts.pop(0)(choose, board, deployment)
            time.sleep(PLAN_SECONDS)
        placement.want(dict.fromkeys(names, POOL))

    def _kill(self, choose, board, deployment):
        process = choose.choice(self._pools[-1].processes)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        self._note(f"killed {process.pid}")

    def _pause(self, choose, board, deployment):
        process = choose.choice(self._pools[-1].processes)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
        self._note(f"stopped {process.pid} for {PAUSE_SECONDS} s")

        def wake():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)

        threading.Timer(PAUSE_SECONDS, wake).start()

    def _renew(self, choose, board, deployment):
        self._pools.append(self._generation(board, deployment))

    def _note(self, act):
        self.log.append(f"{time.monotonic():.3f} {act}")

    def _output(self, backend):
        outbox = backend.outbox("second")
        deadline = time.monotonic() + PATIENCE
        ids = []
        try:
            while len(ids) < self.events and time.monotonic() < deadline:
                time.sleep(0.1)
                ids = [n for data in outbox.read(0, outbox.newest()) for n in _ids(data)]
            time.sleep(0.5)  # What comes twice may come late.
            return [n for data in outbox.read(0, outbox.newest()) for n in _ids(data)]
        finally:
            outbox.close()


def _ids(data):
    return from_bytes(data)["id"].to_pylist()


def out_of_order(ids):
    """The keys whose events did not come out in the order of their source."""
    wrong, newest = Counter(), {}
    for number in ids:
        key = number % KEYS
        wrong[key] += number < newest.get(key, -1)
        newest[key] = max(number, newest.get(key, -1))
    return {key: count for key, count in wrong.items() if count}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--grouping", default="key")
    parser.add_argument("--chain", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        length = given.seconds
        chaos = Chaos(Path(folder), given.seed, given.grouping, 400, length, length, given.chain)
        ids = chaos.run()
    for line in chaos.log:
        print(line)
    lost, twice = chaos.events - len(set(ids)), len(ids) - len(set(ids))
    print(f"{chaos.events} events: {lost} lost, {twice} twice; out of order: {out_of_order(ids)}")


if __name__ == "__main__":
    main()
