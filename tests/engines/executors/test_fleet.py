import logging
import re
import time

import pytest

from elastream.engines.executors.base import Executor
from elastream.engines.executors.fleet import (
    FIRST_LEAD_SECONDS,
    FIRST_LEADS,
    PATIENCE_SECONDS,
    Fleet,
)
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


def test_what_a_query_wants_does_not_count_while_it_does_not_run():
    world = World()
    world.fleet.want("a", 5)
    world.fleet.want("b", 2)
    assert world.run(10) == 7
    world.fleet.note("a", running=False)
    assert (world.run(10), world.fleet.share("b")) == (2, 2)
    world.fleet.note("a", running=True)
    assert (world.run(10), world.fleet.share("b")) == (7, 2)


def test_while_no_query_runs_the_executors_stay():
    world = World()
    for name, count in (("a", 5), ("b", 2)):
        world.fleet.want(name, count)
    world.run(10)
    for name in ("a", "b"):
        world.fleet.note(name, running=False)
        world.run(10)
    assert (len(world.cluster.there), world.fleet.target) == (2, None)
    world.fleet.forget("a")
    world.fleet.want("a", 3)
    assert world.run(10) == 3, "one that comes back is at work"


def test_executors_on_their_way_are_called_off_when_the_last_one_leaves():
    world = World(start=2, lead=6.0)
    world.fleet.want("query", 8)
    world.fleet.want("another", 8)
    world.run(3)
    world.fleet.forget("query")
    assert world.cluster.total == 8
    world.fleet.forget("another")
    assert (world.run(20), world.cluster.total) == (2, 2)


def test_those_that_could_not_go_yet_stay_when_the_last_one_leaves():
    world = World(start=4)
    for name in world.cluster.there:
        world.cluster.free_at[name] = 100.0
    world.fleet.want("query", 1)
    world.run(3)
    world.fleet.forget("query")
    del world.cluster.there["0"], world.cluster.free_at["0"]
    assert world.run(20) == 4


@pytest.mark.parametrize("who", ["looks", "query"])
def test_one_who_has_changed_nothing_changes_nothing_when_it_leaves(who):
    world = World(start=2, lead=6.0)
    world.fleet.join("query")
    world.cluster.ask(5)
    assert not world.fleet.restore("query")
    world.fleet.forget(who)
    assert world.run(20) == 5


@pytest.mark.parametrize(("seconds", "on_their_way"), [(1, True), (20, False)])
def test_one_who_leaves_after_the_session_has_ended_is_forgotten(seconds, on_their_way, caplog):
    caplog.set_level(logging.INFO)
    world = World()
    world.fleet.want("query", 8)
    world.run(seconds)
    world.cluster = world.fleet._cluster = None
    assert not world.fleet.forget("query")
    assert ("cannot be called off" in caplog.text) == on_their_way


def test_what_was_there_at_the_start_is_restored_whatever_the_bounds():
    world = World(start=10, least=1, most=8)
    world.fleet.want("query", 3)
    assert world.run(10) == 3
    world.fleet.note("query", running=False)
    assert world.fleet.restore("query")
    assert world.run(10) == 10
    world.fleet.forget("query")
    world.fleet.want("query", 10)
    assert world.run(10) == 8


def test_a_restore_that_takes_longer_goes_on_without_anybody():
    world = World(start=4, lead=6.0)
    world.fleet.want("query", 1)
    world.run(10)
    world.fleet.restore("query")
    world.run(1)
    world.fleet.forget("query")
    assert world.run(10) == 4


def test_nothing_is_restored_while_another_wants_executors():
    world = World(start=4)
    for name in ("a", "b"):
        world.fleet.want(name, 1)
    world.run(5)
    assert not world.fleet.restore("a")


def test_the_lead_time_is_measured():
    world = World(lead=6.0)
    assert world.fleet.lead_time == FIRST_LEAD_SECONDS
    assert world.fleet.leads == FIRST_LEADS
    world.fleet.want("query", 4)
    world.run(20)
    assert world.fleet.lead_time == pytest.approx(6.0, abs=1.0)


def test_the_shortest_and_the_usual_lead_time_are_told_apart():
    world = World(start=1)
    for count, lead in enumerate((6.0, 2.0, 4.0, 30.0), start=2):
        world.cluster.lead = lead
        world.fleet.want("query", count)
        world.run(40)
    shortest, usual = world.fleet.leads
    assert shortest == pytest.approx(2.0, abs=1.0)
    assert usual == world.fleet.lead_time == pytest.approx(6.0, abs=1.0)


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


def test_one_who_has_not_said_keeps_its_part_of_what_is_there():
    world = World(start=8)
    for name in ("a", "b"):
        world.fleet.join(name)
    assert (world.run(5), world.fleet.share("a"), world.fleet.share("b")) == (8, 4, 4)
    world.fleet.want("a", 2)
    assert (world.run(10), world.fleet.share("a"), world.fleet.share("b")) == (6, 2, 4)
    world.fleet.want("a", 8)
    world.run(10)
    world.fleet.want("a", 1)
    assert world.run(10) == 5
    world.fleet.want("b", 1)
    assert world.run(10) == 2


def test_what_came_before_anybody_had_said_belongs_to_all():
    world = World(start=2)
    world.cluster.ask(6)
    for name in ("a", "b", "c"):
        world.fleet.join(name)
    assert world.run(10) == 6
    world.fleet.want("a", 1)
    assert world.run(10) == 5


def test_one_who_joins_shares_what_the_others_have_not_asked_for():
    world = World(start=6)
    world.fleet.want("a", 1)
    world.fleet.join("b")
    assert world.run(10) == 6
    world.fleet.join("c")
    assert (world.run(10), world.fleet.target) == (6, 6)
    world.fleet.want("a", 6)
    world.run(10)
    world.fleet.join("d")
    world.fleet.want("a", 1)
    assert world.run(10) == 6, "b, c and d have five together, as b had alone"
    world.fleet.forget("b")
    assert world.run(10) == 5


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


def test_a_cluster_that_grants_late_hardly_changes_the_lead_time():
    world = World(start=1, lead=4.0)
    world.fleet.want("query", 2)
    world.run(20)
    world.cluster.lead = 3600.0
    world.fleet.want("query", 8)
    assert world.run(3700) == 8
    assert world.fleet.lead_time == pytest.approx(4.0, abs=1.0)
    world.cluster.lead = 4.0
    for count in (2, 4, 2, 4, 2, 4):
        world.fleet.want("query", count)
        world.run(20)
    assert world.fleet.lead_time == pytest.approx(4.0, abs=1.0)


def test_a_first_executor_that_came_late_counts_with_what_is_plausible():
    world = World(start=1, lead=3600.0)
    world.fleet.want("query", 7)
    world.run(3700)
    assert world.fleet.lead_time == PATIENCE_SECONDS


def test_one_that_waits_for_room_says_nothing_about_the_others_of_its_request():
    world = World(start=1, lead=5.0, most=4)
    world.fleet.want("query", 4)
    world.run(1)
    world.cluster.coming[-1] = 1000.0
    assert world.run(1010) == 4
    assert world.fleet.lead_time == pytest.approx(5.0, abs=1.0)


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


def test_it_says_that_executors_do_not_come():
    world = World(start=2, lead=1e6)
    world.fleet.want("query", 8)
    world.run(PATIENCE_SECONDS)
    assert not world.fleet.problem
    world.run(2)
    started(world.fleet, lambda: world.fleet.problem)
    assert re.fullmatch(
        r"6 of 8 executors are missing, and none has come since \d\d:\d\d:\d\d: the cluster may be "
        "full, .*",
        world.fleet.problem,
    )


def test_while_executors_come_none_is_missing():
    world = World(start=1, lead=50.0, most=20)
    for count in range(2, 9):
        world.fleet.want("query", count)
        world.run(30)
    assert len(world.cluster.there) < 8
    looks = []
    started(world.fleet, lambda: looks.append(world.fleet.problem) or len(looks) > 50)
    assert set(looks) == {""}


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


def test_a_request_for_more_can_be_put_off_and_one_for_fewer_takes_effect_at_once():
    world = World(start=2, lead=2.0)
    world.fleet.want("query", 4, wait=3.0)
    assert world.run(3) == 2
    assert world.run(3) == 4
    assert world.fleet.lead_time == pytest.approx(2.0, abs=1.0)
    world.fleet.want("query", 1, wait=3.0)
    assert world.run(1) == 1


@pytest.mark.parametrize("first", ["urgent", "patient"])
def test_each_puts_off_its_own_requests_only(first):
    """One query is late and asks at once, another plans for later, whoever is first."""
    world = World(start=2, lead=2.0)
    for name in ("urgent", "patient"):
        world.fleet.want(name, 1)
    world.run(2)
    wishes = {"urgent": (3, 0.0), "patient": (2, 8.0)}
    for name in sorted(wishes, key=lambda name: name != first):
        world.fleet.want(name, *wishes[name])
    assert world.run(4) == 5


def test_a_request_that_is_put_off_stays_so_while_others_want_no_more():
    world = World(start=2, lead=2.0)
    for name in ("patient", "content"):
        world.fleet.want(name, 1)
    world.run(2)
    world.fleet.want("patient", 3, wait=8.0)
    for _ in range(3):
        world.fleet.want("content", 1)
        assert world.run(2) == 2
    assert world.run(5) == 4


def test_the_first_request_is_put_off_although_others_have_not_said_or_want_fewer():
    world = World(start=4, lead=2.0)
    for name in ("patient", "content", "silent"):
        world.fleet.join(name)
    world.fleet.want("patient", 5, wait=8.0)
    world.fleet.want("content", 1)
    assert world.run(7) == 4
    assert world.run(5) == 8


def test_executors_without_a_task_are_greeted_once_somebody_wants_any():
    greeted = []
    world = World(start=1, lead=2.0, greet=lambda: greeted.append(world.time))
    world.cluster.new = {*world.cluster.there}
    world.run(3)
    assert greeted == []
    world.fleet.want("query", 2)
    assert world.run(5) == 2
    assert greeted
    world.cluster.new = set()
    greeted.clear()
    world.run(3)
    assert greeted == []
