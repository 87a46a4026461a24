"""A first task for executors that have just come."""

import logging
from types import SimpleNamespace

import pytest

from elastream.engines.attached.warm_up import DESCRIPTION, WarmUp, run_python
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
        self.python = False

    def describe(self, text):
        assert text == DESCRIPTION

    def range(self, start, end, step, partitions):
        assert (start, end, step) == (0, partitions, 1)
        self.partitions = partitions
        return self

    def mapInArrow(self, function, schema):  # noqa: N802 - Spark's name
        assert list(function(iter("ab"))) == ["a", "b"]
        self.python = True
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


def warmed_up(session, python=False):
    warm_up = WarmUp(session, session.cluster, lambda: python)
    warm_up.begin()
    warm_up._thread.join(10.0)
    assert not warm_up._thread.is_alive()


@pytest.mark.parametrize("python", [True, False])
def test_every_core_gets_a_task_until_no_executor_is_new(python):
    session = Session(Cluster())
    warmed_up(session, python)
    assert session.cluster.jobs == [3, 3, 3]
    assert session.python == python


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


def test_a_query_needs_python_if_its_plan_has_a_part_in_it():
    assert run_python([plan("Project"), plan("+- MapInArrow <lambda>(id#0)")])
    assert run_python([plan("ArrowEvalPython [twice(id#0)]")])
    assert not run_python([plan("*(1) Project [id#0]")])
    assert not run_python([SimpleNamespace()])
