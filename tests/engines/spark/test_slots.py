"""How many task slots are enough: all of them on one machine, fewer on a cluster."""

from types import SimpleNamespace

import pytest

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.driver import session as module
from elastream.engines.spark.driver.preflight import least_slots, slots_for
from elastream.engines.spark.driver.session import MASTERS, check_slots, new_session, task_slots
from elastream.errors import InvalidInputError


class Context:
    """A SparkContext whose executors come one after the other, every time somebody looks."""

    def __init__(self, master, *slots, conf=None):
        self.master, self._slots, self.looks = master, list(slots), 0
        self._conf = conf or {}

    def getConf(self):  # noqa: N802 - Spark's name
        return self._conf

    @property
    def defaultParallelism(self):  # noqa: N802 - Spark's name
        self.looks += 1
        return self._slots.pop(0) if len(self._slots) > 1 else self._slots[0]


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(module, "EXECUTORS_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(module, "EXECUTORS_SECONDS", 0.2)
    monkeypatch.setattr(module, "SETTLED_SECONDS", 0.02)


def check(context, needed, least=None):
    check_slots(SimpleNamespace(sparkContext=context), needed, least)


def test_a_task_may_need_several_cores():
    context = Context("spark://host:7077", 9, conf={"spark.task.cpus": "2"})
    assert task_slots(SimpleNamespace(sparkContext=context)) == 4


def test_on_one_machine_everything_needs_a_slot():
    check(Context("local[8]", 8), 8, least=3)
    with pytest.raises(InvalidInputError, match="need 9 task slots, and the Spark session has 8"):
        check(Context("local[8]", 8), 9, least=3)


@pytest.mark.parametrize("master", ["spark://master:7077", "local-cluster[2,2,1024]", "yarn"])
def test_on_a_cluster_the_least_is_enough_when_no_more_executors_come(master):
    check(Context(master, 2, 2, 4), 8, least=4)
    with pytest.raises(InvalidInputError, match="need 4 task slots, and the Spark session has 3"):
        check(Context(master, 2, 3), 8, least=4)


def test_executors_that_are_on_their_way_are_waited_for():
    context = Context("spark://master:7077", 2, 4, 6, 8)
    check(context, 8, least=4)
    assert context.looks == 4


def test_without_a_least_everything_is_needed_everywhere():
    with pytest.raises(InvalidInputError, match="need 8 task slots"):
        check(Context("yarn", 4), 8)


DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}


def test_dynamic_allocation_is_named_at_once_where_it_keeps_executors_from_coming():
    context = Context("spark://master:7077", 2, conf=DYNAMIC)
    with pytest.raises(InvalidInputError, match=r"dynamicAllocation\.enabled.*set it to false"):
        check(context, 8, least=4)
    assert context.looks == 1


def test_executors_that_dynamic_allocation_begins_with_are_waited_for():
    first = {"spark.dynamicAllocation.minExecutors": "2"}
    check(Context("yarn", 2, 4, 8, conf=DYNAMIC | first), 8, least=4)
    with pytest.raises(InvalidInputError, match=r"dynamicAllocation\.enabled"):
        check(Context("yarn", 2, 3, conf=DYNAMIC | first), 8, least=4)


def test_dynamic_allocation_does_not_matter_on_one_machine():
    with pytest.raises(InvalidInputError, match="has 2: use smaller pools"):
        check(Context("local[2]", 2, conf=DYNAMIC), 8)


def test_the_least_is_for_sources_minima_and_data_frames():
    pipeline = Pipeline("test")
    pipeline.add(len, after=pipeline.source("in"), name="work", pool=8, minimum=3)
    pipeline.add(len, after="work", name="store", pool=4)
    topology = pipeline.topology()
    assert least_slots(topology, feeds=1, outputs=2) == 1 + 3 + 1 + 1 + 2
    assert slots_for(topology, feeds=1, outputs=2, generations=1) == 1 + 8 + 4 + 2 + 1 + 2


@pytest.mark.parametrize("master", ["nonsense", "spark:/host", "local[4", "http://host:7077"])
def test_a_master_that_spark_does_not_know_is_refused(master):
    with pytest.raises(InvalidInputError, match=r"is not a URL that Spark knows: write local\[N\]"):
        new_session(4, master)


@pytest.mark.parametrize(
    "master",
    ["local", "local[4]", "local[*,8]", "local-cluster[2,1,512]", "spark://h:7077", "yarn"],
)
def test_every_master_of_spark_is_known(master):
    assert MASTERS.fullmatch(master)
