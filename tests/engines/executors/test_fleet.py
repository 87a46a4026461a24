import pytest

from elastream.engines.executors.base import Executor
from elastream.engines.executors.fleet import FIRST_LEAD_SECONDS, Fleet
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
            Executor("caching", 1, blocks=3),
            Executor("old", 1, since=10.0),
            Executor("young", 1, since=20.0),
        ],
        key=lambda executor: executor.regret,
    )
    assert [executor.name for executor in first] == ["young", "old", "caching", "busy"]


def test_a_fleet_that_only_looks_changes_nothing():
    world = World(start=2, only_look=True)
    world.fleet.want("query", 6)
    assert world.run(20) == 2


@pytest.mark.parametrize("bounds", [(0, 3), (4, 3)])
def test_bounds_are_checked(bounds):
    with pytest.raises(InvalidInputError, match=f"executors=\\({bounds[0]}"):
        World(least=bounds[0], most=bounds[1])
