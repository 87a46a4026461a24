"""A cluster with fewer task slots than replicas, on which an executor dies."""

import logging
import time

import pytest

from elastream.engines.spark.backends import open_backend
from support.numbers_program import PATIENCE, UNEQUAL, Program, processed
from support.processes import descendants
from support.spark_cluster import EXECUTOR
from support.waiting import eventually
from support.workers import rows_of

EXECUTORS, CORES = 2, 6
MOVE_SECONDS = 60.0
"""For a busy machine; it says how long it took with `-o log_cli=true --log-level INFO`."""

REPLACE_SECONDS = 300.0
"""For three executors, one after the other, on a busy machine."""
BAD = 200
DEADLY = """
import multiprocessing
import os
import signal

import pyarrow as pa

from elastream import Pipeline

pipeline = Pipeline("deadly")
BAD = 200
EXECUTOR = b"CoarseGrainedExecutorBackend"


def kill_as_a_kernel_without_memory():
    # The largest process: a child that tries one event, or else the executor.
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    number = os.getpid()
    while EXECUTOR not in open(f"/proc/{{number}}/cmdline", "rb").read():
        number = int(open(f"/proc/{{number}}/stat").read().rpartition(")")[2].split()[1])
    os.kill(number, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def check(rows: list) -> list:
    if any(row["n"] == BAD for row in rows):
        kill_as_a_kernel_without_memory()
    return rows


pipeline.add(check, after=pipeline.source("numbers"), pool=2)
pipeline.add(lambda rows: rows, after="check", name="double", pool=2)

sources = {{"numbers": lambda first, count: pa.table({{"n": range(first, first + count)}})}}
"""

log = logging.getLogger(__name__)


@pytest.mark.long
def test_unequal_operators_share_what_slots_there_are_and_survive_an_executor(tmp_path):
    program = Program(tmp_path, rate=100, seconds=40, pipeline=UNEQUAL)
    state = tmp_path / "state"
    master = f"local-cluster[{EXECUTORS},{CORES},1024]"
    with program.running(state, "--master", master) as run:
        program.wait_until_processed(program.events // 4, state, run)
        with open_backend(state).connect() as connection:
            board = connection.board
            assert len(board.roles()) == 17
            assert len(board.members()) <= EXECUTORS * CORES
            executors = [one for one in descendants(run.pid) if f".{EXECUTOR}\0" in one.command]
            assert len(executors) == EXECUTORS
            below = {one: {each.number for each in descendants(one.number)} for one in executors}
            victim = max(below, key=lambda one: len(acting(connection, below[one])))
            dead = below[victim]
            assert acting(connection, dead)
            killed = time.monotonic()
            victim.kill()
            eventually(lambda: not acting(connection, dead), MOVE_SECONDS)
            log.info("lanes moved within %.1f s", time.monotonic() - killed)
        assert run.wait(PATIENCE) == 0, program.log
    assert processed(state) == program.events


@pytest.mark.long
def test_workers_that_wait_for_slots_do_not_take_those_of_data_frames(tmp_path):
    program = Program(tmp_path, rate=40, seconds=10)
    (tmp_path / "mended").touch()
    program.finish(tmp_path / "state", "--master", "local-cluster[2,2,1024]")
    assert program.written() == program.expected


@pytest.mark.long
def test_an_event_that_kills_its_executor_is_set_aside_and_its_neighbours_are_not(tmp_path):
    program = Program(tmp_path, rate=40, seconds=10, pipeline=DEADLY)
    state = tmp_path / "state"
    master = f"local-cluster[{EXECUTORS},3,1024]"
    options = ["--master", master, "--drain-seconds", str(REPLACE_SECONDS)]
    with program.running(state, *options) as run:
        assert run.wait(2 * REPLACE_SECONDS) == 0, program.log
    with open_backend(state).connect() as connection:
        (letter,) = connection.dead_letters.read()
        let_in = connection.ledger.totals().counts["numbers", 0].emitted
    assert (letter.operator, letter.error) == ("check", "the process died (SIGKILL)")
    assert rows_of(letter) == [{"n": BAD}]
    # The source dies with its executor, and the run ends when the time of its trace is over.
    assert processed(state) == let_in - 1


def acting(connection, processes):
    """The members that these processes act for, and that own lanes."""
    members, lanes = connection.board.members(), connection.ledger.totals().lanes
    return [
        name
        for name, of in members.items()
        if of.pid in processes
        and any(lane.owner == name[1] for lane in lanes.get(name[0], {}).values())
    ]
