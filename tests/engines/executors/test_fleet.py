import time

import pytest

from elastream.engines.executors.base import Executor
from elastream.engines.executors.fleet import FIRST_LEAD_SECONDS, PATIENCE_SECONDS, Fleet
from elastream.errors import InvalidInputError
from support.micro_batches import VirtualCluster


class World:
    """A virtual cluster and a fleet on it, second by second."""

    def __init__(self, start=2, lead=6.0, least=1, most=8, **more):
        self.time = 0.0
        self.cluster = VirtualCluster(lambda: self.time, start, lead)
        self.fleet = Fleet(self.cluster, least, most, clock=lambda: self.time, **more)

    def run(self, seconds):
        for _ in range(int(seconds)):
            self.time += 1.0
            self.cluster.step()
            self.fleet.step()
        return len(self.cluster.there)


def test_while_nobody_wants_anything_nothing_changes():
    assert World(start=3).run(10) == 3


def test_executors_come_and_go_as_wanted_within_bounds():
    world = World()
    for wanted, there in ((5, 5), (20, 8), (3, 3), (0, 1)):
        world.fleet.want("query", wanted)
        assert world.run(10) == there


def test_it_is_settled_when_as_many_are_there_as_wanted():
    world = World(start=2, lead=6.0)
    assert world.fleet.settled
    world.fleet.want("query", 4)
    assert not world.fleet.settled
    world.run(3)
    assert not world.fleet.settled
    world.run(10)
    assert world.fleet.settled


def test_queries_share_the_executors_in_proportion():
    world = World()
    world.fleet.want("a", 4)
    world.fleet.want("b", 2)
    assert world.run(10) == 6
    assert (world.fleet.share("a"), world.fleet.share("b")) == (4, 2)
    assert world.fleet.forget("a")
    assert world.run(10) == 2
    assert not world.fleet.forget("b")


def test_the_lead_time_is_measured():
    world = World(lead=6.0)
    assert world.fleet.lead_time == FIRST_LEAD_SECONDS
    world.fleet.want("query", 4)
    world.run(20)
    assert world.fleet.lead_time == pytest.approx(6.0, abs=1.0)


def test_one_that_replaces_a_dead_one_says_nothing_about_the_lead_time():
    world = World(lead=6.0)
    world.fleet.want("query", 4)
    world.run(100)
    dead = next(iter(world.cluster.there))
    del world.cluster.there[dead], world.cluster.free_at[dead]
    assert world.run(20) == 4
    assert world.fleet.lead_time == pytest.approx(6.0, abs=1.0)


def test_one_that_works_is_not_released_until_it_is_idle():
    world = World(start=3)
    for name in world.cluster.there:
        world.cluster.free_at[name] = 5.0 * (1 + int(name))
    world.fleet.want("query", 1)
    assert world.run(3) == 3
    assert world.run(5) == 2
    assert world.run(10) == 1


def test_one_that_dies_while_scaling_down_is_not_missed():
    world = World(start=4)
    for name in world.cluster.there:
        world.cluster.free_at[name] = 8.0
    world.fleet.want("query", 2)
    world.run(2)
    del world.cluster.there["0"], world.cluster.free_at["0"]
    assert world.run(20) == 2


def test_the_idle_the_empty_and_the_young_go_first():
    first = sorted(
        [
            Executor("busy", 1, running=1),
            Executor("read", 1, shuffled=9),
            Executor("caching", 1, blocks=3),
            Executor("old", 1, since=10.0),
            Executor("young", 1, since=20.0),
        ],
        key=lambda executor: executor.regret,
    )
    assert [executor.name for executor in first] == ["young", "old", "read", "caching", "busy"]


def test_executors_on_their_way_come_although_somebody_joins():
    world = World(start=2, lead=6.0)
    world.cluster.ask(5)
    world.fleet.join("query")
    assert world.run(10) == 5
    assert world.fleet.target is None
    assert world.fleet.at_start == 5


def test_one_who_has_not_said_counts_with_the_least_as_soon_as_another_has():
    world = World(start=4)
    for name in ("a", "b"):
        world.fleet.join(name)
    assert (world.run(5), world.fleet.share("a"), world.fleet.share("b")) == (4, 4, 4)
    world.fleet.want("a", 3)
    assert (world.run(10), world.fleet.share("a"), world.fleet.share("b")) == (4, 3, 1)


def test_one_who_only_looks_sees_all_executors_and_changes_nothing():
    world = World(start=2)
    world.fleet.want("scaled", 4)
    assert (world.run(10), world.fleet.share("looks")) == (4, 4)


def test_a_manager_that_has_forgotten_is_asked_again():
    world = World(start=1, lead=3.0)
    world.fleet.want("query", 4)
    world.run(1)
    world.cluster.ask(1)
    assert world.run(5) == 1
    assert world.run(20) == 4


def test_one_slow_executor_does_not_spoil_the_lead_time():
    world = World(start=1, lead=4.0, most=20)
    for count, lead in ((5, 4.0), (6, 90.0), (9, 4.0)):
        world.cluster.lead = lead
        world.fleet.want("query", count)
        world.run(100)
    assert world.fleet.lead_time == pytest.approx(4.0, abs=1.0)


def test_asking_for_more_does_not_make_those_asked_for_before_look_quick():
    world = World(start=1, lead=8.0)
    for count in (2, 3, 4, 5, 6):
        world.fleet.want("query", count)
        world.run(3)
    world.run(20)
    assert world.fleet.lead_time == pytest.approx(8.0, abs=1.0)


def test_asking_for_fewer_forgets_the_newest_requests():
    world = World(start=1, lead=8.0)
    for count, seconds in ((3, 4), (6, 1), (2, 20)):
        world.fleet.want("query", count)
        world.run(seconds)
    assert world.fleet.lead_time == pytest.approx(8.0, abs=1.0)


class Stuck(VirtualCluster):
    """Releases none."""

    def release(self, names):
        return ()


def started(fleet, reached):
    fleet.start()
    deadline = time.monotonic() + 30
    try:
        while not reached():
            assert time.monotonic() < deadline, "not in time"
            time.sleep(0.01)
    finally:
        fleet.close()


def test_it_says_why_executors_that_are_too_many_stay():
    now = [0.0]
    fleet = Fleet(Stuck(lambda: now[0], 4, 5.0), 1, 8, clock=lambda: now[0])
    fleet.want("query", 2)
    fleet.step()
    now[0] += PATIENCE_SECONDS
    started(fleet, lambda: fleet.problem)
    assert "2 executors that are no longer needed cannot go yet" in fleet.problem
    assert "spark.shuffle.service.enabled" in fleet.problem


class Broken(VirtualCluster):
    """Fails for a while."""

    failures = 0

    def ask(self, total):
        self.failures += 1
        if self.failures < 3:
            raise OSError("the manager restarts")
        super().ask(total)


def test_a_cluster_that_fails_is_a_problem_until_it_works_again():
    problems = set()
    cluster = Broken(time.monotonic, 1, 0.0)
    fleet = Fleet(cluster, 1, 8)
    fleet.want("query", 3)

    def came():
        problems.add(fleet.problem)
        return len(fleet.present) == 3 and not fleet.problem

    started(fleet, came)
    assert "executors cannot be scaled now: OSError: the manager restarts" in problems


@pytest.mark.parametrize("bounds", [(0, 3), (4, 3)])
def test_bounds_are_checked(bounds):
    with pytest.raises(InvalidInputError, match=f"executors=\\({bounds[0]}"):
        World(least=bounds[0], most=bounds[1])
