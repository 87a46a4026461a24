"""Where the tasks of workers are, from what Spark's status store says."""

import logging
from types import SimpleNamespace

import pytest

from elastream.engines.spark.driver import worker_places as module
from elastream.engines.spark.driver.worker_places import (
    CHANGING_LOOKS,
    PlaceFinder,
    Places,
    PlaceWatcher,
)
from support.waiting import eventually


class Seq(list):
    """A list of Scala, as Python sees it."""

    def size(self):
        return len(self)

    def apply(self, place):
        return self[place]


class Task:
    """An attempt of a task; it counts how often somebody asks for it."""

    asked = 0

    def __init__(self, index, executor, status="RUNNING"):
        self.index, self.executorId = (lambda: index), (lambda: executor)
        self.now = status

    def status(self):
        Task.asked += 1
        return self.now


class Spark:
    """A session, its tracker and its store."""

    def __init__(self):
        self.executors, self.tasks, self.number = ["driver", "1", "2"], Seq(), 1
        self.then = lambda: None
        jsc = SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: self))
        self.sparkContext = SimpleNamespace(statusTracker=lambda: self, _jsc=jsc)

    def running(self):
        return self.number, SimpleNamespace(runId=f"run {self.number}")

    def executorList(self, active_only):  # noqa: N802 - Spark's names
        return Seq(SimpleNamespace(id=lambda name=name: name) for name in self.executors)

    def getJobIdsForGroup(self, group):  # noqa: N802
        return [7] if self.tasks else []

    def getJobInfo(self, job):  # noqa: N802
        return SimpleNamespace(stageIds=[3])

    def lastStageAttempt(self, stage):  # noqa: N802
        return SimpleNamespace(attemptId=lambda: 0)

    def taskList(self, stage, attempt, most):  # noqa: N802
        self.then()
        return Seq(self.tasks)


@pytest.fixture
def spark():
    return Spark()


def test_workers_are_where_their_tasks_run(spark):
    finder = PlaceFinder(spark, spark.running)
    assert finder.look()[:2] == (1, {})
    spark.tasks += [Task(0, "1"), Task(1, "2"), Task(2, "1", "FAILED")]
    assert finder.look()[:2] == (1, {0: "1", 1: "2"})
    spark.tasks += [Task(2, "2")]
    assert finder.look()[:2] == (1, {0: "1", 1: "2", 2: "2"})


def test_who_is_on_an_executor_that_is_gone_is_nowhere(spark):
    finder = PlaceFinder(spark, spark.running)
    spark.tasks += [Task(0, "1"), Task(1, "2")]
    finder.look()
    spark.executors.remove("2")
    assert finder.look().alive == {"driver", "1"}
    assert finder.look()[:2] == (1, {0: "1"}), "though Spark has not said so of its task"


def test_what_spark_says_of_tasks_soon_after_its_executors_is_noticed(spark):
    finder = PlaceFinder(spark, spark.running)
    spark.tasks += [Task(0, "1"), Task(1, "2")]
    finder.look()
    spark.tasks[0].now = "FAILED"
    assert finder.look()[:2] == (1, {1: "2"})


def test_while_nothing_changes_tasks_are_left_alone(spark):
    finder = PlaceFinder(spark, spark.running)
    spark.tasks += [Task(0, "1")]
    for _ in range(CHANGING_LOOKS):
        finder.look()
    asked = Task.asked
    assert finder.look()[:2] == (1, {0: "1"})
    assert Task.asked == asked


def test_tasks_that_end_because_another_generation_has_taken_over_are_not_missed(spark):
    finder = PlaceFinder(spark, spark.running)
    spark.tasks += [Task(0, "1"), Task(1, "2")]
    finder.look()

    def take_over():
        spark.tasks[0].now, spark.number = "SUCCESS", 2

    spark.then = take_over
    assert finder.look().generation == 2


def test_a_watcher_passes_on_what_it_sees_and_says_once_that_it_cannot(monkeypatch, caplog):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.001)
    seen, looks = [], []

    def look():
        looks.append(1)
        if len(looks) < 5:
            raise RuntimeError("the session is closed")
        return Places(1, {}, frozenset())

    watcher = PlaceWatcher(look, seen.append)
    eventually(lambda: seen)
    watcher.close()
    said = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage() for record in said] == [
        "where workers are cannot be seen now: RuntimeError: the session is closed"
    ]
