"""A soak: a real pipeline on Spark, with plans, generations and faults, for as long as you like.

    make soak SECONDS=600

Memory, descriptors, threads, disk and checkpoints are sampled all the while, each is drawn, and
each is judged: it may rise while everything warms up, and not afterwards. Every act is logged. The
exit code is 1 if something grows, or an event was lost or came twice.
"""

import argparse
import os
import random
import shutil
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from tests.support.processes import descendants

from elastream.core.decision import Plan
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.dataframes.feeds import DataFrameSource
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.preflight import slots_for
from elastream.engines.spark.driver.session import new_session
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.errors import EngineError
from elastream.sinks import Table

POOL, RATE, FED = 2, 200, 50
GENERATION_SECONDS = 20.0
SAMPLE_SECONDS = 2.0
FAULT_SECONDS = 15.0
"""From one fault to the next, on average."""
PAUSE_SECONDS = 2.5
WARM_UP = 0.4
"""The part of the time that is not judged: caches fill, Spark keeps what it keeps."""
BATCHES_KEPT = 10
MEASURES = {
    "driver's memory": ("MB", 40.0),
    "workers' memory": ("MB", 80.0),
    "live Java heap": ("MB", 40.0),
    "descriptors": ("open files", 30.0),
    "threads": ("threads", 20.0),
    "disk": ("MB", 16.0),
    "checkpoints": ("files", 60.0),
}
"""What is sampled, its unit, and by how much it may rise without meaning anything."""
GROWTH = 1.15


def grows(times, values, slack):
    """Whether what comes after the warm-up rises: its last third lies clearly above its first.

    >>> grows(range(100), [5.0] * 100, 1.0), grows(range(100), list(range(100)), 1.0)
    (False, True)
    """
    kept = [v for t, v in zip(times, values, strict=True) if t >= WARM_UP * max(times)]
    third = max(len(kept) // 3, 1)
    first, last = median(kept[:third]), median(kept[-third:])
    return last > GROWTH * first and last - first > slack


@dataclass
class Samples:
    """What was measured so far."""

    state: Path
    checkpoints: list
    times: list = field(default_factory=list)
    values: dict = field(default_factory=lambda: {name: [] for name in MEASURES})

    def take(self, at, session):
        runtime = session._jvm.java.lang.Runtime.getRuntime()
        session._jvm.java.lang.System.gc()
        below = descendants(os.getpid())
        java = [p for p in below if "java" in p.command.split("\0")[0]]
        workers = [p for p in below if "\0-m\0elastream.engines.spark.worker.daemon" in p.command]
        everybody = [os.getpid(), *(p.number for p in below)]
        long_lived = [os.getpid(), *(p.number for p in java)]
        files = [f for folder in self.checkpoints for f in folder.rglob("*") if f.is_file()]
        found = {
            "driver's memory": _resident([os.getpid()]),
            "workers' memory": _resident([p.number for p in workers]),
            "live Java heap": (runtime.totalMemory() - runtime.freeMemory()) / 2**20,
            "descriptors": sum(_count(f"/proc/{n}/fd") for n in everybody),
            "threads": sum(_count(f"/proc/{n}/task") for n in long_lived),
            "disk": sum(_size(f) for f in self.state.rglob("*")) / 2**20,
            "checkpoints": float(len(files)),
        }
        self.times.append(at)
        for name, value in found.items():
            self.values[name].append(value)

    def growing(self):
        return [
            name
            for name, (_, slack) in MEASURES.items()
            if grows(self.times, self.values[name], slack)
        ]

    def draw(self, target):
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot

        growing = self.growing()
        figure, axes = pyplot.subplots(len(MEASURES), 1, figsize=(9, 14), sharex=True)
        for axis, (name, (unit, _)) in zip(axes, MEASURES.items(), strict=True):
            axis.plot(self.times, self.values[name], color="C3" if name in growing else "C0")
            axis.axvspan(0, WARM_UP * max(self.times), color="0.93")
            axis.set_ylabel(unit)
            axis.set_ylim(bottom=0)
            verdict = "grows" if name in growing else "ok"
            axis.set_title(f"{name}: {verdict}", loc="left", fontsize=10)
        axes[-1].set_xlabel("seconds; what is grey is the warm-up, and is not judged")
        figure.tight_layout()
        figure.savefig(target, dpi=110)


def _resident(numbers):
    total = 0
    for number in numbers:
        with suppress(OSError):
            pages = int(Path(f"/proc/{number}/statm").read_text().split()[1])
            total += pages * os.sysconf("SC_PAGE_SIZE")
    return total / 2**20


def _count(folder):
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


def _size(file):
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _wake(number):
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGCONT)


def pipeline_of(folder):
    """Two sources, one of them a DataFrame; one operator behind the other, and a table."""

    def work(table):
        time.sleep(0.001 * table.num_rows)
        return table

    pipeline = Pipeline("soak")
    sources = [pipeline.source("trace"), pipeline.source("fed")]
    pipeline.add(work, after=sources, pool=POOL, grouping="key", key="id")
    # Without a key, what came twice is there twice.
    pipeline.add(Table(folder / "store.db", "stored"), after="work", pool=POOL)
    return pipeline.topology()


class Soak:
    """One run of it.

    Args:
        folder: For the state, the store and the checkpoints.
        seconds: How long.
        seed: Of plans and faults.
    """

    def __init__(self, folder, seconds, seed):
        self._folder, self._seconds = folder, seconds
        self._choose = random.Random(seed)
        self._begun = time.monotonic()
        self.events = int(RATE * seconds * 0.8)

    def run(self):
        """What was sampled, what of the trace is in the store, what is there twice, the end."""
        topology = pipeline_of(self._folder)
        session = new_session(slots_for(topology, feeds=1, outputs=1))
        session.conf.set("spark.sql.streaming.minBatchesToRetain", str(BATCHES_KEPT))
        state = self._folder / "state"
        samples = Samples(state, [state / "checkpoints", state / "feeds", self._folder / "read"])
        try:
            with closing(self._engine(topology, session, state)) as engine:
                self._reading = self._read(engine)
                self._begun = time.monotonic()
                self._live(engine, session, samples)
                self._log(f"draining; {engine.health()}")
                drained = engine.drain(120)
                self._reading.stop()
        finally:
            session.stop()
        with closing(sqlite3.connect(self._folder / "store.db")) as db:
            rows, stored = db.execute(
                "SELECT count(*), count(DISTINCT id) FROM stored WHERE id >= 0"
            ).fetchone()
        return samples, stored, rows - stored, drained

    def _engine(self, topology, session, state):
        def make(first, count):
            return pa.table({"id": np.arange(first, first + count)})

        seconds = int(self._seconds * 0.8)
        frame = session.readStream.format("rate").option("rowsPerSecond", FED).load()
        fed = frame.coalesce(1).selectExpr("-1 - value % 1000 AS id")
        sources = {
            "trace": TraceSource(make, 1.0, np.full(seconds, float(RATE))),
            "fed": DataFrameSource(fed),
        }
        self.events = RATE * seconds
        return SparkEngine(
            topology,
            sources,
            state,
            session,
            outputs={"work": "id long"},
            generation=GENERATION_SECONDS,
        )

    def _read(self, engine):
        return (
            engine.stream("work")
            .writeStream.format("noop")
            .option("checkpointLocation", str(self._folder / "read"))
            .trigger(processingTime="1 second")
            .start()
        )

    def _live(self, engine, session, samples):
        sampled = planned = -SAMPLE_SECONDS
        fault = self._choose.uniform(5, 2 * FAULT_SECONDS)
        while (now := time.monotonic() - self._begun) < self._seconds:
            if now - planned > 1.0:
                planned = now
                names = engine.topology.by_name
                engine.apply(Plan({name: self._choose.randint(1, POOL) for name in names}))
                with suppress(EngineError):
                    engine.observe()
            if now > fault:
                fault = now + self._choose.uniform(0.5, 1.5) * FAULT_SECONDS
                self._harm(engine)
            if now - sampled > SAMPLE_SECONDS:
                sampled = now
                if not self._reading.isActive:
                    # On a busy machine, Spark may give up waiting for one of its processes.
                    self._log(f"reading again after {self._reading.exception()}"[:200])
                    self._reading = self._read(engine)
                samples.take(now, session)
            time.sleep(0.1)

    def _harm(self, engine):
        with engine.backend.connect() as connection:
            members = sorted(connection.board.members().items())
        if not members:
            return
        name, attendance = self._choose.choice(members)
        what = self._choose.choice([signal.SIGKILL, signal.SIGSTOP])
        with suppress(ProcessLookupError):
            os.kill(attendance.pid, what)
            self._log(f"{what.name} to {name[0]} {name[1]}, process {attendance.pid}")
            if what is signal.SIGSTOP:
                # By a thread of its own: one that is stopped may hold a lock that we wait for.
                threading.Timer(PAUSE_SECONDS, _wake, [attendance.pid]).start()

    def _log(self, act):
        print(f"{time.monotonic() - self._begun:8.1f} s  {act}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/soak"))
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    soak = Soak(given.out.resolve(), given.seconds, given.seed)
    samples, stored, twice, drained = soak.run()
    samples.draw(given.out / "soak.png")
    growing = samples.growing()
    for name, (unit, _) in MEASURES.items():
        values = samples.values[name]
        verdict = "grows" if name in growing else "ok"
        print(f"{name:16} {min(values):8.0f} to {max(values):8.0f} {unit:10}  {verdict}")
    whole = stored == soak.events and not twice and drained
    print(f"{soak.events} events of the trace, {stored} stored, {twice} of them twice; ", end="")
    print(f"drained: {drained}")
    print(f"drawn: {given.out / 'soak.png'}")
    sys.exit(0 if whole and not growing else 1)


if __name__ == "__main__":
    main()
