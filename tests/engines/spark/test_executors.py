"""Executors are emptied before they go, and which of them do."""

import time
from types import SimpleNamespace

import pytest

from elastream.engines.executors.base import Executor
from elastream.engines.executors.fleet import Fleet
from elastream.engines.spark.driver import executors as module
from elastream.engines.spark.driver.executors import EmptiedFirst, check_room
from elastream.engines.spark.driver.placement import SOURCE, Occupation
from elastream.errors import InvalidInputError
from support.micro_batches import VirtualCluster
from support.waiting import eventually


class Pretended:
    """A cluster and a pipeline on it; a test says who needs what."""

    def __init__(self, *names, slots=4, fitted=False):
        self.names = list(names)
        self.slots = slots
        self.needed = {}
        self.workers = dict.fromkeys(names, slots)
        self.foreign = {}
        self.shuffled = set()
        self.cleared = []
        self.closed, self.ended, self.total = [], [], len(names)
        self.time = 0.0
        self.cluster = EmptiedFirst(self, self.clear, self.occupation, fitted)
        self.fleet = Fleet(self.cluster, 1, 8, clock=lambda: self.time)

    def list(self):
        return [
            Executor(
                name,
                self.slots,
                running=self.workers.get(name, 0) + self.foreign.get(name, 0),
                since=float(place),
            )
            for place, name in enumerate(self.names)
        ]

    def ask(self, total):
        self.total = total

    def holds_shuffle_files(self, name):
        return name in self.shuffled

    def close_to_tasks(self, names):
        self.closed += names

    def end(self, names):
        self.ended += names
        self.names = [name for name in self.names if name not in names]

    def clear(self, names):
        self.cleared = sorted(names)

    def occupation(self):
        return Occupation(self.needed, self.workers, frozenset(self.workers))

    def look(self, times=8):
        for _ in range(times):
            self.time += 0.25
            self.fleet.step()


def test_the_one_that_does_least_for_the_pipeline_is_cleared_and_goes_when_it_is_empty():
    world = Pretended("a", "b", "c")
    world.needed = {"a": SOURCE + 1, "b": 1, "c": 3}
    world.fleet.want("pipeline", 2)
    world.look()
    assert (world.cleared, world.total) == (["b"], 2)
    assert not world.ended, "a replica there has work to finish"
    world.needed = {"a": SOURCE + 2, "c": 3}
    world.look()
    assert world.closed == world.ended == ["b"]


def test_executors_on_their_way_when_a_run_ends_are_called_off(monkeypatch):
    class Slow(VirtualCluster):
        application = "app"

        def __init__(self, session, read_only):
            super().__init__(time.monotonic, 2, 1000.0)

    placement = SimpleNamespace(
        clear=lambda names: None, occupation=lambda: Occupation({}, {}, frozenset())
    )
    monkeypatch.setattr(module, "SparkCluster", Slow)
    executors = module.PipelineExecutors(None, placement, 0, 1, (1, 8), fitted=False)
    cluster = executors._emptied._cluster
    executors.want(5)
    eventually(lambda: cluster.total == 5)
    executors.close()
    assert cluster.total == 2


def test_the_one_with_a_source_goes_last():
    world = Pretended("a", "b")
    world.needed = {"a": SOURCE, "b": 4}
    world.fleet.want("pipeline", 1)
    world.look(2)
    assert world.cleared == ["b"]


def test_while_one_is_emptied_no_other_takes_its_place():
    world = Pretended("a", "b", "c")
    world.needed = {"a": 1, "b": 2, "c": 2}
    world.fleet.want("pipeline", 2)
    world.look(2)
    world.needed = {"a": 3, "c": 2}
    world.look(2)
    assert world.cleared == ["a"]


def test_when_it_is_needed_again_before_it_has_gone_it_stays():
    world = Pretended("a", "b")
    world.needed = {"a": 3, "b": 1}
    world.fleet.want("pipeline", 1)
    world.look(2)
    assert world.cleared == ["b"]
    world.fleet.want("pipeline", 2)
    world.look(2)
    assert world.cleared == []
    assert not world.closed


def test_tasks_of_other_queries_end_in_their_own_time():
    world = Pretended("a", "b")
    world.needed, world.foreign = {"a": 9}, {"b": 1}
    world.fleet.want("pipeline", 1)
    world.look(20)
    assert world.closed == ["b"], "no more tasks begin"
    assert not world.ended
    assert not world.cluster.ended, "it still costs"
    world.foreign = {}
    world.look(2)
    assert world.ended == ["b"]
    assert world.cluster.ended == {"b"}, "Spark may list it for longer"


def test_one_with_shuffle_files_that_may_be_read_stays():
    world = Pretended("a", "b")
    world.needed, world.shuffled = {"a": 9}, {"b"}
    world.fleet.want("pipeline", 1)
    world.look(20)
    assert not world.closed
    world.shuffled = set()
    world.look()
    assert world.ended == ["b"]


def test_beside_data_frames_it_goes_when_no_worker_is_left_that_would_take_their_slots():
    world = Pretended("a", "b", fitted=True)
    world.fleet.want("pipeline", 1)
    world.look()
    assert world.closed == ["b"], "the next generation does without it"
    assert world.cluster.closed_slots == world.slots
    assert not world.ended
    world.workers["b"] = 0
    world.look()
    assert world.ended == ["b"]


def test_its_lead_time_ends_when_somebody_works_there():
    world = Pretended("a")
    world.fleet.want("pipeline", 2)
    world.look(4)
    world.names.append("b")
    world.look(4)
    world.workers["b"] = 4
    world.look(1)
    assert world.fleet.lead_time == pytest.approx(2.0)


def test_too_few_slots_even_with_the_most_executors_are_refused():
    check_room((1, 2), slots=4, needed=8)
    with pytest.raises(InvalidInputError, match="allow 3 executors or more"):
        check_room((1, 2), slots=4, needed=9)
