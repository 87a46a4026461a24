"""Workers are nobody in particular until the board gives them a role."""

import subprocess
import sys
import threading

import pytest
from pyspark.sql.datasource import InputPartition

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.worker import pool
from elastream.engines.spark.worker.pool import PoolReader
from support.waiting import eventually
from support.workers import Workers


@pytest.fixture(autouse=True)
def _no_watch(monkeypatch):
    monkeypatch.setattr(pool, "exit_with_parent", lambda: None)


def workers_of(**settings):
    def same(table, *_):
        return table

    pipeline = Pipeline("test")
    pipeline.add(same, after=pipeline.source("in"), name="work", pool=2, lanes=2, **settings)
    pipeline.add(len, after="work", name="end", pool=2, lanes=2)
    return Workers(pipeline.topology())


class Worker(threading.Thread):
    """A Spark task, without Spark."""

    def __init__(self, workers, number, generation=None):
        super().__init__()
        text = workers.deployment.to_text()
        self.reader = PoolReader(text, generation or workers.generation, workers=3)
        self.number = number
        self.report = self.error = None
        self.start()

    def run(self):
        try:
            (self.report,) = self.reader.read(InputPartition(self.number))
        except Exception as error:
            self.error = error


def test_there_is_one_partition_per_worker():
    reader = PoolReader("", 1, workers=3)
    start, end = reader.initialOffset(), reader.latestOffset()
    assert start != end
    assert [each.value for each in reader.partitions(start, end)] == [0, 1, 2]


def test_workers_take_the_most_important_roles_until_they_are_dismissed():
    workers = workers_of()
    tasks = [Worker(workers, number) for number in range(3)]
    needed = {("in", 0), ("work", 0), ("end", 0)}
    eventually(lambda: workers.board.members().keys() >= needed)
    assert workers.board.members().keys() - {("outside", 0)} == needed
    workers.board.dismiss()
    for task in tasks:
        task.join(20)
        assert not task.is_alive()
    assert sorted(task.report[0] for task in tasks) == [0, 1, 2]


def test_a_worker_goes_on_in_another_role_and_works_there():
    workers = workers_of()
    workers.plan(work=(0,), end=(0,))
    tasks = [Worker(workers, number) for number in range(3)]
    eventually(lambda: ("end", 0) in workers.board.members())
    # The roles: in 0, work 0, end 0; nobody has work 1.
    assert workers.board.reassign(("end", 0), ("work", 1))
    eventually(lambda: ("work", 1) in workers.board.members())
    assert ("end", 0) not in workers.board.members()
    workers.plan(work=(1,), end=(0,))
    workers.put([1, 2, 3])
    eventually(lambda: workers.waiting("end") == 3)
    assert workers.ledger.counts(("work", 1)).processed == 3
    workers.board.dismiss()
    for task in tasks:
        task.join(20)
        assert not task.is_alive()


def test_a_worker_for_whom_there_is_no_role_ends_at_once():
    workers = workers_of()
    workers.board.abandon(workers.generation)
    task = Worker(workers, 0)
    task.join(20)
    assert task.report[0] == 0


def test_a_worker_whose_place_a_later_generation_has_ends():
    workers = workers_of()
    late = workers.generation
    workers.joined(("in", 0))
    with workers.backend.connect() as end:
        end.lanes.join(("in", 0), late + 1)
    task = Worker(workers, 0)
    task.join(20)
    assert (task.report[0], task.error) == (0, None)


def test_a_worker_that_cannot_set_up_says_why():
    def refuse():
        raise RuntimeError("no database today")

    workers = workers_of(setup=refuse)
    tasks = [Worker(workers, number) for number in range(2)]
    eventually(workers.board.failures)
    (told,) = workers.board.failures().values()
    line = refuse.__code__.co_firstlineno + 1
    assert told == f"RuntimeError: no database today ({__file__}:{line})"
    workers.board.dismiss()
    for task in tasks:
        task.join(20)
    assert [str(task.error) for task in tasks if task.error] == ["no database today"]


def test_what_workers_share_is_left_alone_by_their_garbage_collectors():
    """In a process of its own: what is frozen stays so."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import gc; from elastream.engines.spark.worker import daemon; "
            "daemon.share_what_is_imported(); print(gc.get_freeze_count(), len(gc.get_objects()))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    frozen, watched = map(int, told.stdout.split())
    assert frozen > 100 * watched
