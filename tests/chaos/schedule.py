"""A schedule of faults with a seed: what happens when, and to whom, is the same every time.

    PYTHONPATH=tests python -m tests.chaos.schedule --seed 7 --seconds 600 --set-back 3600

runs a long one by hand and logs every act.
"""

import argparse
import random
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.chaos.pools import POOLS
from tests.support.backends import BACKENDS

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.driver.placement import Placement
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker import chain as chain_module
from elastream.engines.spark.worker import trace_player
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.trace_player import TraceSource

KEYS, POOL = 23, 3
PLAN_SECONDS = 0.1
PAUSE_SECONDS = 1.5
"""Longer than a hand-over takes."""
PATIENCE = 300.0
RIGHT = time.time
"""The clock on the wall as it is."""


@dataclass(frozen=True)
class Clock:
    """The clock on the wall, which can be set back in all processes that follow it.

    Args:
        sign: When this file is there, it is set back.
        seconds: By how much.
    """

    sign: Path
    seconds: float = 0.0

    def set_back(self):
        self.sign.touch()
        self.follow()

    def follow(self):
        """Let this process's clock go wrong, if it is time."""
        if self.seconds and time.time is RIGHT and self.sign.exists():
            seconds = self.seconds
            self._set(lambda: RIGHT() - seconds)

    def set_right(self):
        self._set(RIGHT)

    def _set(self, clock):
        time.time = trace_player.time = chain_module.time = clock


def deployment_of(
    backend, grouping, rate, seconds, clock, chain=False, pool=POOL, lanes=None, padding=0
):
    """Two operators in a line, whose output is kept in its order; they may share replicas."""

    def work(table):
        clock.follow()
        time.sleep(0.0005 * table.num_rows)
        return table

    def make(first, count):
        clock.follow()
        numbers = np.arange(first, first + count)
        columns = {"id": numbers, "key": numbers % KEYS}
        return pa.table(columns | ({"padding": [bytes(padding)] * count} if padding else {}))

    settings = {"grouping": grouping, "pool": pool, "lanes": lanes}
    settings |= {"key": "key"} if grouping == "key" else {}
    pipeline = Pipeline("chaos")
    pipeline.add(work, after=pipeline.source("in"), name="first", **settings)
    pipeline.add(work, after="first", name="second", chain=chain, **settings)
    trace = TraceSource(make, 1.0, np.full(seconds, float(rate)))
    outputs = frozenset({"second"})
    return Deployment(pipeline.topology(), {"in": trace}, Options(), backend, outputs)


@dataclass
class Chaos:
    """A run with faults.

    Args:
        kind: The backend.
        folder: For the state.
        seed: Of the schedule.
        grouping: Of both operators.
        rate: Events per second.
        seconds: How long events come.
        faults: How many, besides plans.
        chain: Whether the operators share replicas.
        pool: Of both operators.
        lanes: Of both operators; four for each replica unless given.
        set_back: By how many seconds the clock on the wall is set back when half the time is over.
        padding: How many bytes an event has besides.
    """

    kind: str
    folder: Path
    seed: int
    grouping: str = "key"
    rate: int = 400
    seconds: int = 6
    faults: int = 8
    chain: bool = False
    pool: int = POOL
    lanes: int | None = None
    set_back: float = 0.0
    padding: int = 0
    log: list[str] = field(default_factory=list)

    @property
    def events(self):
        return self.rate * self.seconds

    def run(self):
        """The ids that came out, in the order in which they did."""
        backend = BACKENDS[self.kind](self.folder)
        self._clock = Clock(self.folder / "set-back", self.set_back)
        given = self.grouping, self.rate, self.seconds, self._clock, self.chain
        deployment = deployment_of(backend, *given, self.pool, self.lanes, self.padding)
        backend.prepare("chaos", deployment.layout)
        with ExitStack() as stack:
            stack.callback(self._clock.set_right)
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
                placing.ledger.lanes,
            )
            self._play(placement, board, deployment)
            return self._output(backend)

    def _generation(self, board, deployment):
        """Workers that are ready to begin, and begin."""
        number = board.new_generation(deployment.members)
        pool = POOLS[self.kind](deployment, number)
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
            placement.want({name: choose.randint(1, self.pool) for name in names})
            placement.review()
            half = time.monotonic() - begun > self.seconds / 2
            if self.set_back and half and not self._clock.sign.exists():
                self._clock.set_back()
                self._note(f"the clock is set back by {self.set_back:g} s")
                self._renew(choose, board, deployment)
            while moments and time.monotonic() - begun > moments[0]:
                moments.pop(0)
                acts.pop(0)(choose, board, deployment)
            time.sleep(PLAN_SECONDS)
        placement.want(dict.fromkeys(names, self.pool))

    def _kill(self, choose, board, deployment):
        pool = self._pools[-1]
        worker = choose.randrange(len(pool.processes))
        pool.kill(worker)
        self._note(f"killed worker {worker}")

    def _pause(self, choose, board, deployment):
        pool = self._pools[-1]
        worker = choose.randrange(len(pool.processes))
        pool.pause(worker, PAUSE_SECONDS)
        self._note(f"stopped worker {worker} for {PAUSE_SECONDS} s")

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
    parser.add_argument("--backend", default="sqlite", choices=POOLS)
    parser.add_argument("--set-back", type=float, default=0.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(
            given.backend,
            Path(folder),
            given.seed,
            given.grouping,
            400,
            given.seconds,
            given.seconds,
            given.chain,
            set_back=given.set_back,
        )
        ids = chaos.run()
    for line in chaos.log:
        print(line)
    lost, twice = chaos.events - len(set(ids)), len(ids) - len(set(ids))
    print(f"{chaos.events} events: {lost} lost, {twice} twice; out of order: {out_of_order(ids)}")


if __name__ == "__main__":
    main()
