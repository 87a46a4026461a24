"""A run on a standalone cluster with its state on Kafka: an executor dies, and nothing with it."""

import logging
import time

from elastream.engines.spark.backends import open_backend
from support.lanes import lanes_of
from support.numbers_program import PATIENCE, Program
from support.processes import descendants
from support.spark_cluster import StandaloneCluster
from support.waiting import eventually

MOVE_SECONDS = 30.0
"""For a busy machine; it says how long it took with `-o log_cli=true --log-level INFO`."""

log = logging.getLogger(__name__)


def test_an_executor_that_is_killed_takes_nothing_with_it(kafka_cluster, tmp_path, record_property):
    program = Program(tmp_path, rate=60, seconds=16)
    (tmp_path / "mended").touch()
    state = f"kafka:{kafka_cluster.address}/cluster"
    with (
        StandaloneCluster(tmp_path / "spark") as cluster,
        program.running(state, "--master", cluster.master) as run,
    ):
        program.wait_until_processed(program.events // 4, state, run)
        with open_backend(state).connect() as connection:
            victim, dead = executor_with_most_members(cluster, connection)
            killed = time.monotonic()
            victim.kill()
            eventually(lambda: not lanes_of(dead, connection), MOVE_SECONDS)
            log.info("lanes moved within %.1f s", time.monotonic() - killed)
        assert run.wait(PATIENCE) == 0, program.log
    assert program.written() == program.expected
    open_backend(state).remove()


def executor_with_most_members(cluster, connection):
    """Its process, and the numbers of those below it."""
    below = {one: {p.number for p in descendants(one.number)} for one in cluster.executors()}
    assert len(below) == 2
    members = connection.board.members().values()
    victim = max(below, key=lambda one: sum(of.pid in below[one] for of in members))
    assert any(of.pid in below[victim] for of in members)
    return victim, below[victim]
