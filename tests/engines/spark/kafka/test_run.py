"""Runs on Spark with their state on Kafka: stopped, killed, resumed, moved and removed."""

import json
import signal
import subprocess
import sys
from contextlib import closing, contextmanager

import pyarrow as pa
import pytest

import elastream
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.kafka import topics
from support.processes import descendants
from support.waiting import eventually

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
RATE, SECONDS = 60, 8
EVENTS = RATE * SECONDS
PATIENCE = 120.0


@pytest.fixture
def program(tmp_path):
    """The pipeline, and a trace whose last event is due a while before its end."""
    (tmp_path / "mine.py").write_text(PIPELINE.format(folder=str(tmp_path)))
    rates = [RATE] * SECONDS + [0] * 4
    lines = [f"{second},{rate}\n" for second, rate in enumerate(rates)]
    (tmp_path / "trace.csv").write_text("time,value\n" + "".join(lines))
    return tmp_path


def elastream_command(*arguments):
    return [sys.executable, "-m", "elastream", *map(str, arguments)]


def said(*arguments):
    """What a command prints, if it ends well."""
    done = subprocess.run(
        elastream_command(*arguments), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(state):
    """What is in a state, in any order."""
    return sorted(said("state", "show", state).splitlines()[1:])


@contextmanager
def running(folder, state, *more):
    """A run in a process of its own; nothing of it is left in the end."""
    command = elastream_command("run", f"{folder}/mine.py:pipeline", "--state", state)
    options = ["--trace", str(folder / "trace.csv"), "--td", "1", *more]
    with open(folder / "log", "a") as log:
        run = subprocess.Popen([*command, *options], stdout=log, stderr=log, cwd=folder)
        below = []
        try:
            yield run
        finally:
            below = descendants(run.pid)
            run.kill()
            run.wait()
            for process in below:
                process.kill()


def finish(folder, state, *more):
    with running(folder, state, *more) as run:
        assert run.wait(PATIENCE) == 0, (folder / "log").read_text()[-3_000:]


def processed(state):
    with open_backend(state).connect() as connection:
        counts = connection.ledger.totals().counts
    return sum(of.processed for (name, _), of in counts.items() if name == "double")


def written(folder):
    """What Spark's sink has committed, in the order of the numbers."""
    log = folder / "out" / "_spark_metadata"
    lines = [line for file in log.iterdir() if file.name.isdigit() for line in _lines(file)]
    paths = {json.loads(line)["path"] for line in lines if line.startswith("{")}
    names = {path.rpartition("/")[2] for path in paths}
    rows = [json.loads(line) for name in names for line in _lines(folder / "out" / name)]
    return sorted((row["n"], row["twice"]) for row in rows)


def _lines(file):
    return file.read_text().splitlines()


def test_a_run_is_stopped_killed_moved_to_a_folder_and_back_and_loses_nothing(
    kafka_cluster, program
):
    place = f"kafka:{kafka_cluster.address}/moved"
    first, second = (f"{place}{n}?checkpoints={program}/state{n}" for n in (1, 2))
    folder = program / "folder"

    # It is interrupted: what is inside gets through.
    with running(program, first) as run:
        eventually(lambda: run.poll() is not None or _exists(first), PATIENCE)
        eventually(lambda: run.poll() is not None or processed(first) > EVENTS // 6, PATIENCE)
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE) == 0, (program / "log").read_text()[-3_000:]
    at_rest = processed(first)
    assert EVENTS // 6 < at_rest < EVENTS

    # It goes on, and the driver is killed.
    with running(program, first) as run:
        eventually(lambda: run.poll() is not None or processed(first) > EVENTS // 2, PATIENCE)
        assert run.poll() is None, (program / "log").read_text()[-3_000:]

    # Events that failed are shown and tried again, and everything moves to a folder and on.
    assert "is unlucky" in said("dead-letters", first)
    assert "put back" in said("dead-letters", first, "--retry")
    (program / "mended").touch()
    said("state", "export", program / "one", "--state", first)
    said("state", "import", program / "one", "--state", folder)
    assert shown(folder) == shown(first)
    finish(program, folder, "--duration", str(SECONDS * 3 // 4))
    said("state", "export", program / "two", "--state", folder)
    said("state", "import", program / "two", "--state", second)
    finish(program, second)

    assert written(program) == [(n, 2 * n) for n in range(EVENTS)]
    assert "no dead letters" in said("dead-letters", second)

    # Nothing is left of them.
    for state in (first, second):
        assert "removed moved" in said("clean", state, "--yes")
        assert topics.existing(open_backend(state).place) == {}


def _exists(state):
    return open_backend(state).exists


def test_a_run_from_python_is_stopped_and_goes_on(kafka_cluster, spark_session, program):
    pipeline = elastream.Pipeline("numbers")

    @pipeline.operator(after=pipeline.source("numbers"), pool=2, grouping="key", key="n")
    def same(batch: pa.Table) -> pa.Table:
        return batch

    @pipeline.operator(after=same, pool=2, grouping="pull")
    def double(row: dict) -> dict:
        return {"n": row["n"], "twice": 2 * row["n"]}

    def numbers(first, count):
        return pa.table({"n": range(first, first + count)})

    state = f"kafka:{kafka_cluster.address}/python?checkpoints={program}/state"

    def begin():
        run = elastream.run(
            pipeline,
            {"numbers": elastream.replay(numbers, program / "trace.csv")},
            state=state,
            session=spark_session,
            outputs={"double": "n long, twice long"},
            say=[].append,
        )
        files = run["double"].writeStream.format("json")
        query = files.option("checkpointLocation", str(program / "checkpoint"))
        return run, query.start(str(program / "out"))

    run, query = begin()
    eventually(lambda: processed(state) > EVENTS // 3, PATIENCE)
    run.stop()
    query.stop()
    assert processed(state) < EVENTS

    run, query = begin()
    assert run.await_termination(PATIENCE)
    query.stop()
    assert written(program) == [(n, 2 * n) for n in range(EVENTS)]
    with closing(open_backend(state).outbox("double")) as outbox:
        assert outbox.newest() == outbox.consumed()
    open_backend(state).remove()
