"""Runs on Spark with their state on Kafka: stopped, killed, resumed, moved and removed."""

import signal
from contextlib import closing

import pyarrow as pa
import pytest

import elastream
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.kafka import topics
from support.numbers_program import PATIENCE, Program, processed, said
from support.waiting import eventually

SECONDS = 8


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path, rate=60, seconds=SECONDS)


def shown(state):
    """What is in a state, in any order."""
    return sorted(said("state", "show", state).splitlines()[1:])


def test_a_run_is_stopped_killed_moved_to_a_folder_and_back_and_loses_nothing(
    kafka_cluster, program
):
    here, events = program.folder, program.events
    place = f"kafka:{kafka_cluster.address}/moved"
    first, second = (f"{place}{n}" for n in (1, 2))

    # It is interrupted: what is inside gets through.
    with program.running(first) as run:
        program.wait_until_processed(events // 6, first, run)
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE) == 0, program.log
    assert events // 6 < processed(first) < events

    # It goes on, and the driver is killed.
    with program.running(first) as run:
        program.wait_until_processed(events // 2, first, run)

    # Events that failed are shown and tried again, and everything moves to a folder and on.
    assert "is unlucky" in said("dead-letters", first)
    assert "put back" in said("dead-letters", first, "--retry")
    (here / "mended").touch()
    said("state", "export", here / "one", "--state", first)
    said("state", "import", here / "one", "--state", here / "folder")
    assert shown(here / "folder") == shown(first)
    program.finish(here / "folder", "--duration", str(SECONDS * 3 // 4))
    said("state", "export", here / "two", "--state", here / "folder")
    said("state", "import", here / "two", "--state", second)
    program.finish(second)

    assert program.written() == program.expected
    assert "no dead letters" in said("dead-letters", second)

    # Nothing is left of them.
    for state in (first, second):
        assert "removed moved" in said("clean", state, "--yes")
        assert topics.existing(open_backend(state).place) == {}


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

    here = program.folder
    state = f"kafka:{kafka_cluster.address}/python"

    def begin():
        run = elastream.run(
            pipeline,
            {"numbers": elastream.replay(numbers, program.trace)},
            state=state,
            checkpoint=here / "state",
            session=spark_session,
            outputs={"double": "n long, twice long"},
            say=[].append,
        )
        files = run["double"].writeStream.format("json")
        query = files.option("checkpointLocation", str(here / "checkpoint"))
        return run, query.start(str(here / "out"))

    run, query = begin()
    eventually(lambda: processed(state) > program.events // 3, PATIENCE)
    run.stop()
    query.stop()
    assert processed(state) < program.events

    run, query = begin()
    assert run.await_termination(PATIENCE)
    query.stop()
    assert program.written() == program.expected
    with closing(open_backend(state).outbox("double")) as outbox:
        assert outbox.newest() == outbox.consumed()
    open_backend(state).remove()
