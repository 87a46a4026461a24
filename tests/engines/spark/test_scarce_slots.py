"""A cluster with fewer task slots than replicas, on which an executor dies."""

import logging
import time

import pytest

from elastream.engines.spark.backends import open_backend
from support.numbers_program import PATIENCE, UNEQUAL, Program, processed
from support.processes import descendants
from support.spark_cluster import EXECUTOR
from support.waiting import eventually

EXECUTORS, CORES = 2, 6
MOVE_SECONDS = 60.0
"""For a busy machine; it says how long it took with `-o log_cli=true --log-level INFO`."""

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


def acting(connection, processes):
    """The members that these processes act for, and that own lanes."""
    members, lanes = connection.board.members(), connection.ledger.totals().lanes
    return [
        name
        for name, of in members.items()
        if of.pid in processes
        and any(lane.owner == name[1] for lane in lanes.get(name[0], {}).values())
    ]
