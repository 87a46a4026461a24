"""Which executors Spark's scheduler is asked to release, and when."""

from types import SimpleNamespace

import pytest

from elastream.engines.executors.spark import SparkCluster


class Store:
    """As much of the status store as releasing needs."""

    def __init__(self, shuffled, jobs=(), cores=1):
        self.shuffled, self.jobs, self.cores = shuffled, list(jobs), cores

    def executors(self):
        driver = {"id": "driver", "totalCores": 0}
        each = [{"id": name, "totalCores": self.cores, "totalShuffleWrite": bytes_}
                for name, bytes_ in self.shuffled.items()]  # fmt: skip
        rest = {"activeTasks": 0, "rddBlocks": 0, "addTime": 1000}
        rest |= {"totalShuffleWrite": 0, "totalTasks": 1}
        return [{**rest, **one} for one in (driver, *each)]

    def running_jobs(self):
        return self.jobs


class Names(list):
    """A sequence of the JVM."""

    def apply(self, place):
        return self[place]

    def size(self):
        return len(self)


def cluster_with(store, quiet=None, **settings):
    backend = SimpleNamespace(killExecutors=lambda ids, *flags: Names(ids))
    scala = SimpleNamespace(isLocal=lambda: False, schedulerBackend=lambda: backend)
    context = SimpleNamespace(
        master="yarn",
        getConf=lambda: {name.replace("_", "."): value for name, value in settings.items()},
        _jsc=SimpleNamespace(sc=lambda: scala),
        _jvm=SimpleNamespace(PythonUtils=SimpleNamespace(toSeq=list)),
    )
    cluster = SparkCluster(SimpleNamespace(sparkContext=context), quiet=quiet)
    vars(cluster)["_status"] = store
    cluster.list()
    return cluster


def test_one_that_never_shuffled_goes_at_any_time():
    cluster = cluster_with(Store({"1": 0, "2": 500}), quiet=lambda: False)
    assert cluster.release(["1", "2"]) == {"1"}
    assert cluster.release(["2"]) == set()


def test_one_that_shuffled_goes_when_nobody_reads_it():
    cluster = cluster_with(Store({"1": 500}), quiet=lambda: True)
    assert cluster.release(["1"]) == {"1"}


def test_one_that_shuffled_goes_at_any_time_when_a_service_keeps_its_files():
    cluster = cluster_with(
        Store({"1": 500}), quiet=lambda: False, spark_shuffle_service_enabled="true"
    )
    assert cluster.release(["1"]) == {"1"}


@pytest.mark.parametrize(("stages", "gone"), [([3], {"1"}), ([3, 4], set())])
def test_without_anyone_to_ask_jobs_with_several_stages_read_what_was_shuffled(stages, gone):
    cluster = cluster_with(Store({"1": 500}, [{"stageIds": stages}]))
    assert cluster.release(["1"]) == gone


def test_executors_are_those_with_cores():
    (only,) = cluster_with(Store({"7": 500})).list()
    assert (only.name, only.cores, only.shuffled, only.since) == ("7", 1, 500, 1.0)


def test_the_cores_of_an_executor_are_the_tasks_that_it_runs_at_once():
    (only,) = cluster_with(Store({"7": 0}, cores=5), spark_task_cpus="2").list()
    assert only.cores == 2
