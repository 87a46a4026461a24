"""Executors of a real cluster follow the load of a pipeline, and nobody else notices."""

import json
import subprocess
import sys

import pytest

from elastream.control.history import HISTORY
from elastream.control.history_reader import HistoryReader
from support.numbers_program import UNEQUAL, Program, processed

LONGEST_SECONDS = 600
RATES = [20] * 30 + [150] * 30 + [20] * 40
"""For 5, 10, 7.5 and 2.5 ms: a replica of each is enough, then eight together are."""


@pytest.mark.long
def test_executors_come_and_go_with_the_load_and_nothing_is_lost(tmp_path):
    program = Program(tmp_path, pipeline=UNEQUAL, rates=RATES)
    state = tmp_path / "state"
    options = ("--master", "local-cluster[3,6,512]", "--executors", "1:3", *MEMORY)
    with program.running(state, *options) as run:
        assert run.wait(LONGEST_SECONDS) == 0, program.log
    assert processed(state) == program.events
    history = HistoryReader(state / HISTORY)
    cycles = [(row["time"], row["executors"], row["changes"]) for row in history.cycles()]
    history.close()
    counts = [count for _, count, _ in cycles if count is not None]
    assert counts[0] == 3, "a local cluster begins with all"
    assert min(counts) < 3, cycles
    lowest = counts.index(min(counts))
    assert max(counts[lowest:]) > min(counts), cycles
    asked = [one for _, _, changes in cycles for one in changes if one["operator"] == "(executors)"]
    assert {one["after"] > one["before"] for one in asked} == {True, False}
    assert all("task slots" in one["reasons"] for one in asked)


MEMORY = ("--conf", "spark.executor.memory=512m")
BESIDE = """
import json
import sys
import time

import pyarrow as pa

import elastream

sys.path.insert(0, {folder!r})
from mine import pipeline

spark = elastream.session(pipeline, master="local-cluster[3,9,512]", config={{
    "spark.executor.memory": "512m"}})
ticks = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
other = ticks.writeStream.format("noop").trigger(processingTime="0 seconds").start()
events = elastream.replay(
    lambda first, count: pa.table({{"n": range(first, first + count)}}), {trace!r})
run = elastream.run(
    pipeline, {{"numbers": events}}, session=spark, state={state!r}, executors=(2, 3))
run.await_termination()
seen = [row["executors"] for row in run.history()]
tracker, failed, batches = spark.sparkContext.statusTracker(), 0, other.lastProgress["batchId"]
for job in tracker.getJobIdsForGroup(str(other.runId)):
    for stage in tracker.getJobInfo(job).stageIds:
        info = tracker.getStageInfo(stage)
        failed += info.numFailedTasks if info else 0
print(json.dumps([seen[0], seen[-1], failed, batches, str(other.exception())]))
spark.stop()
"""


@pytest.mark.long
def test_an_executor_goes_while_another_query_of_the_session_works(tmp_path):
    program = Program(tmp_path, pipeline=UNEQUAL, rates=[20] * 45)
    script = tmp_path / "beside.py"
    state = tmp_path / "state"
    script.write_text(
        BESIDE.format(folder=str(tmp_path), trace=str(program.trace), state=str(state))
    )
    words = [sys.executable, str(script)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    first, last, failed, batches, exception = json.loads(done.stdout.splitlines()[-1])
    assert (first, last) == (3, 2)
    assert (failed, exception) == (0, "None")
    assert batches > 5
    assert processed(state) == program.events
