"""A disk that is really full: the run waits, says so, and goes on by itself when there is space."""

import subprocess
import time
from contextlib import closing, suppress

import numpy as np
import pyarrow as pa
import pytest

from elastream.core.health import State
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.worker.trace_player import TraceSource
from support.waiting import eventually

EVENTS = 2000
MEGABYTES = 24


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of its own, with little room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = f"size={MEGABYTES}m,mode=0700"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder):
    """Leave no room at all."""
    with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


def test_a_run_waits_while_the_disk_is_full_and_goes_on_by_itself(spark_session, small_disk):
    def make(first, count):
        texts = ["some text that takes room " * 8] * count
        return pa.table({"id": range(first, first + count), "text": texts})

    pipeline = Pipeline("full")
    pipeline.add(lambda table: table, after=pipeline.source("in"), name="work", pool=2)
    trace = TraceSource(make, 1.0, np.full(10, EVENTS / 10))
    state = small_disk / "state"
    engine = SparkEngine(
        pipeline.topology(), {"in": trace}, state, spark_session, sample=0.5, generation=3.0
    )

    def processed():
        with engine.backend.connect() as connection:
            counts = connection.ledger.totals().counts
        return sum(of.processed for (name, _), of in counts.items() if name == "work")

    with closing(engine):
        eventually(lambda: processed() > 0)
        fill(small_disk)
        eventually(lambda: engine.health().state is State.WAITING)
        assert "full" in engine.health().why
        time.sleep(4.0)  # A generation comes to its end meanwhile, and none can begin.
        before = processed()
        assert before < EVENTS
        (small_disk / "ballast").unlink()
        eventually(lambda: processed() == EVENTS, 120)
        eventually(lambda: engine.health().state is State.RUNNING)
        assert engine.observe().operators["work"].processed == EVENTS
