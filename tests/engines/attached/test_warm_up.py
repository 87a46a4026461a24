"""A first task for executors that have just come."""

import logging
from types import SimpleNamespace

import pytest

from elastream.engines.attached.warm_up import DESCRIPTION, WarmUp, python_parts
from elastream.engines.executors.base import Executor


class Cluster:
    """Two executors; the second gets its first task from the third job on."""

    def __init__(self):
        self.jobs = []

    def list(self):
        return [Executor("0", 2), Executor("1", 1, new=len(self.jobs) < 3)]


class Session:
    """As much of a session as a job without output needs."""

    def __init__(self, cluster, problem=None):
        self.cluster, self.problem = cluster, problem
        self.sparkContext = SimpleNamespace(setJobDescription=self.describe)
        self.python = 0

    def describe(self, text):
        assert text == DESCRIPTION

    def range(self, start, end, step, partitions):
        assert (start, end, step) == (0, partitions, 1)
        self.partitions = partitions
        return self

    def mapInArrow(self, function, schema):  # noqa: N802 - Spark's name
        assert list(function(iter("ab"))) == ["a", "b"]
        self.python += 1
        return self

    @property
    def write(self):
        return self

    def format(self, name):
        assert name == "noop"
        return self

    def mode(self, name):
        return self

    def save(self):
        self.cluster.jobs.append(self.partitions)
        if self.problem:
            raise self.problem


def warmed_up(session, python=0):
    warm_up = WarmUp(session, session.cluster, lambda: python)
    warm_up.begin()
    warm_up._thread.join(10.0)
    assert not warm_up._thread.is_alive()


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_every_core_gets_a_task_until_no_executor_is_new(parts):
    session = Session(Cluster())
    warmed_up(session, parts)
    assert session.cluster.jobs == [3, 3, 3]
    assert session.python == 3 * parts


def test_a_job_that_fails_is_not_repeated(caplog):
    session = Session(Cluster(), RuntimeError("the session has ended"))
    with caplog.at_level(logging.INFO):
        warmed_up(session)
    assert session.cluster.jobs == [3]
    assert "the session has ended" in caplog.text


def plan(text):
    found = SimpleNamespace(executedPlan=lambda: SimpleNamespace(toString=lambda: text))
    query = SimpleNamespace(lastExecution=lambda: found)
    return SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=lambda: query))


READ_AND_MAPPED = """
WriteToDataSourceV2 MicroBatchWrite[epoch: 4, writer: NoopStreamingWrite]
+- MapInArrow work(id#16L)#17, [id#18L], false
   +- *(1) Project [id#16L]
      +- MicroBatchScan[id#16L] (Python)
"""


def test_a_task_has_as_many_parts_in_python_as_the_plan_between_two_exchanges():
    assert python_parts([plan("Project"), plan("+- MapInArrow <lambda>(id#0)")]) == 1
    assert python_parts([plan("ArrowEvalPython [twice(id#0)], [pythonUDF0#1]")]) == 1
    assert python_parts([plan(READ_AND_MAPPED)]) == 2
    assert (
        python_parts([plan("MapInPandas a\n+- Exchange hashpartitioning\n+- MapInPandas b")]) == 1
    )
    assert python_parts([plan("*(1) Project [id#0]")]) == 0
    assert python_parts([SimpleNamespace()]) == python_parts([]) == 0
