"""A pipeline that `elastream run` runs in a process of its own, and what it has written.

Numbers play a trace, pass two operators, and Spark's own sink writes them to files. The first
operator fails on some of them until there is a file `mended`. Another pipeline has four operators
that take unequal times, and no DataFrame.
"""

import json
import subprocess
import sys
from contextlib import contextmanager

from elastream.engines.spark.backends import open_backend
from support.processes import descendants
from support.waiting import eventually

PATIENCE = 120.0
PIPELINE = """
from pathlib import Path

import pyarrow as pa

from elastream import Pipeline

HERE = Path({folder!r})
pipeline = Pipeline("numbers")
numbers = pipeline.source("numbers")


@pipeline.operator(after=numbers, pool=2)
def check(row: dict) -> dict:
    if row["n"] % 100 == 13 and not (HERE / "mended").exists():
        raise ValueError(f"{{row['n']}} is unlucky")
    return row


@pipeline.operator(after=check, pool=2)
def double(rows: list) -> list:
    return [{{"n": row["n"], "twice": 2 * row["n"]}} for row in rows]


sources = {{"numbers": lambda first, count: pa.table({{"n": range(first, first + count)}})}}
outputs = {{"double": "n long, twice long"}}


def sinks(run):
    files = run["double"].writeStream.format("json")
    files.option("checkpointLocation", str(HERE / "checkpoint")).start(str(HERE / "out"))
"""

UNEQUAL = """
import time

import pyarrow as pa

from elastream import Pipeline

pipeline = Pipeline("unequal")
after = pipeline.source("numbers")


def taking(milliseconds):
    def work(rows: list) -> list:
        time.sleep(milliseconds / 1000 * len(rows))
        return rows

    return work


for name, milliseconds in dict(parse=5.0, model=10.0, check=7.5, double=2.5).items():
    after = pipeline.add(taking(milliseconds), after=after, name=name, pool=4)

sources = {{"numbers": lambda first, count: pa.table({{"n": range(first, first + count)}})}}
"""


def said(*arguments):
    """What a command of elastream prints, if it ends well."""
    command = [sys.executable, "-m", "elastream", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Program:
    """The pipeline in a folder, and a trace whose last event is due a while before its end."""

    def __init__(self, folder, rate=0, seconds=0, pipeline=PIPELINE, rates=None):
        self.folder = folder
        rates = rates or [rate] * seconds
        self.events = sum(rates)
        self.expected = [(n, 2 * n) for n in range(self.events)]
        (folder / "mine.py").write_text(pipeline.format(folder=str(folder)))
        lines = [f"{second},{value}\n" for second, value in enumerate([*rates, 0, 0, 0, 0])]
        self.trace = folder / "trace.csv"
        self.trace.write_text("time,value\n" + "".join(lines))

    @property
    def log(self):
        """The end of what its runs had to say."""
        return (self.folder / "log").read_text()[-3_000:]

    @contextmanager
    def running(self, state, *more):
        """A run in a process of its own; nothing of it is left in the end."""
        command = [sys.executable, "-m", "elastream", "run", f"{self.folder}/mine.py:pipeline"]
        options = ["--state", str(state), "--trace", str(self.trace), "--td", "1", *more]
        with open(self.folder / "log", "a") as log:
            run = subprocess.Popen([*command, *options], stdout=log, stderr=log, cwd=self.folder)
            try:
                yield run
            finally:
                below = descendants(run.pid)
                run.kill()
                run.wait()
                for process in below:
                    process.kill()

    def finish(self, state, *more):
        """Run it to its end."""
        with self.running(state, *more) as run:
            assert run.wait(PATIENCE) == 0, self.log

    def wait_until_processed(self, events, state, run):
        """While it runs."""
        eventually(lambda: run.poll() is not None or open_backend(state).exists, PATIENCE)
        eventually(lambda: run.poll() is not None or processed(state) > events, PATIENCE)
        assert run.poll() is None, self.log

    def written(self):
        """What Spark's sink has committed, in the order of the numbers."""
        log = self.folder / "out" / "_spark_metadata"
        lines = [line for file in log.iterdir() if _is_batch(file) for line in _lines(file)]
        paths = {json.loads(line)["path"] for line in lines if line.startswith("{")}
        names = {path.rpartition("/")[2] for path in paths}
        rows = [json.loads(line) for name in names for line in _lines(self.folder / "out" / name)]
        return sorted((row["n"], row["twice"]) for row in rows)


def processed(state):
    """How many events the last operator has processed."""
    with open_backend(state).connect() as connection:
        counts = connection.ledger.totals().counts
    return sum(of.processed for (name, _), of in counts.items() if name == "double")


def _lines(file):
    return file.read_text().splitlines()


def _is_batch(file):
    """Whether it names files of batches; every tenth one names those of all before, too."""
    return file.name.removesuffix(".compact").isdigit()
