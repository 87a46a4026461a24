"""Which replicas are active, and which lanes they own."""

from collections import Counter

import pytest

from elastream.core.lanes import TOLERANCE
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.backends.base import Ownership
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.engines.spark.driver.placement import Placement
from elastream.engines.spark.driver.worker_places import Places
from elastream.engines.spark.worker.execution import events_of
from elastream.errors import BackendUnavailableError
from support.lanes import moved
from support.workers import Workers


class Driver:
    """A placement over a backend; tests say who joins, and what waits."""

    def __init__(self, *joined, pool=4, lanes=8, **settings):
        pipeline = Pipeline("test")
        pipeline.add(
            len, after=pipeline.source("in"), name="work", pool=pool, lanes=lanes, **settings
        )
        pipeline.add(len, after="work", name="store", pool=2, lanes=4)
        self.topology = pipeline.topology()
        self.workers = Workers(self.topology)
        self.silent = frozenset()
        self.ownership = Ownership()
        self.placement = Placement(
            self.topology,
            self.workers.deployment.layout,
            self.workers.board,
            self.workers.ledger.lanes,
            lambda members: self.silent & members.keys(),
            self.ownership,
        )
        for name in joined:
            self.join(*name)

    def join(self, operator, *numbers):
        for number in numbers:
            self.workers.joined((operator, number))

    def leave(self, *names):
        self.workers.board.dismiss(names)

    @property
    def plan(self):
        published = self.workers.board.plan()
        assert (published.active, published.owners, published.admits) == (
            self.placement.plan.active, self.placement.plan.owners, self.placement.plan.admits,
        )  # fmt: skip
        return published


def test_the_first_plan_has_the_minimum_and_gives_every_lane_an_owner():
    driver = Driver(("work", 0, 1, 2, 3), ("store", 0, 1), minimum=2)
    driver.placement.want({})
    assert driver.plan.active == {"work": (0, 1), "store": (0,)}
    assert Counter(driver.plan.owners["work"]) == {0: 4, 1: 4}
    assert driver.plan.owners["store"] == (0,) * 4


def test_before_anybody_has_joined_there_is_a_plan_all_the_same():
    driver = Driver()
    driver.placement.want({"work": 2})
    assert driver.plan.active["work"] == (0, 1)


def test_any_replicas_that_have_joined_can_be_active():
    driver = Driver(("work", 1, 3), ("store", 1))
    driver.placement.want({"work": 2})
    assert driver.plan.active == {"work": (1, 3), "store": (1,)}
    assert set(driver.plan.owners["work"]) == {1, 3}


def test_as_many_are_active_as_have_joined_until_there_are_more():
    driver = Driver(("work", 2), ("store", 0))
    driver.placement.want({"work": 3})
    assert driver.plan.active["work"] == (2,)
    driver.join("work", 0, 3)
    driver.placement.review()
    assert driver.plan.active["work"] == (0, 2, 3)
    assert driver.placement.wanted["work"] == 3


def test_who_is_active_stays_so_and_who_leaves_is_replaced():
    driver = Driver(("work", 1, 3), ("store", 0))
    driver.placement.want({"work": 2})
    driver.join("work", 0, 2)
    driver.placement.review()
    assert driver.plan.active["work"] == (1, 3)
    before = driver.plan.owners["work"]
    driver.leave(("work", 1))
    driver.placement.review()
    assert driver.plan.active["work"] == (0, 3)
    after = driver.plan.owners["work"]
    assert {before[lane] for lane in moved(before, after)} == {1}


def test_a_plan_is_published_only_when_it_changes_something():
    driver = Driver(("work", 0, 1), ("store", 0))
    driver.placement.want({"work": 2})
    version = driver.plan.version
    for _ in range(3):
        driver.placement.review()
        driver.placement.want({"work": 2})
        driver.placement.want({})
    assert driver.plan.version == version
    driver.placement.want({"work": 1})
    assert driver.plan.version == version + 1


def test_nothing_is_published_before_somebody_wants_something():
    driver = Driver(("work", 0), ("store", 0))
    driver.placement.review()
    assert driver.workers.board.plan().version == 0


def test_as_few_lanes_as_possible_move():
    driver = Driver(("work", 0, 1, 2, 3), ("store", 0), lanes=12)
    driver.placement.want({"work": 2})
    before = driver.plan.owners["work"]
    driver.placement.want({"work": 3})
    after = driver.plan.owners["work"]
    assert {after[lane] for lane in moved(before, after)} == {2}
    assert max(Counter(after).values()) <= 4 * (1 + TOLERANCE)
    driver.placement.want({"work": 2})
    back = driver.plan.owners["work"]
    assert {after[lane] for lane in moved(after, back)} == {2}


def test_a_backlog_is_shared_when_replicas_are_added():
    driver = Driver(("work", 0, 1), ("store", 0))
    driver.placement.want({"work": 1})
    for lane, events in enumerate([900, 10, 10, 10, 10, 10, 10, 10]):
        driver.workers.put([0] * events, lane=lane)
    driver.placement.want({"work": 2})
    owners = driver.plan.owners["work"]
    assert owners.count(owners[0]) == 1, "the long lane has a replica to itself"


def test_without_a_key_no_lane_moves_because_of_its_load():
    driver = Driver(("work", 0, 1), ("store", 0))
    driver.placement.want({"work": 2})
    version = driver.plan.version
    for _ in range(20):
        driver.workers.put([0] * 500, lane=0)
        driver.placement.review()
    assert driver.plan.version == version


def test_a_hot_key_gets_a_replica_of_its_own():
    driver = Driver(("work", 0, 1), ("store", 0), grouping="key", key="n")
    driver.placement.want({"work": 2})
    before = driver.plan.owners["work"]
    assert before.count(before[0]) == 4
    for _ in range(30):
        driver.workers.put([0] * 900, lane=0)
        for lane in range(1, 8):
            driver.workers.put([0] * 10, lane=lane)
        driver.placement.review()
    after = driver.plan.owners["work"]
    assert after.count(after[0]) == 1
    version = driver.plan.version
    driver.placement.review()
    assert driver.plan.version == version


def test_a_moment_moves_no_lane():
    """What arrived is smoothed, and what waits must be a quarter more than a fair share."""
    driver = Driver(("work", 0, 1), ("store", 0), grouping="key", key="n")
    driver.placement.want({"work": 2})
    for _ in range(10):
        for lane in range(8):
            driver.workers.put([0] * 100, lane=lane)
        driver.placement.review()
    version = driver.plan.version
    driver.workers.put([0] * 200, lane=0)
    driver.placement.review()
    assert driver.plan.version == version


def test_a_shared_lane_has_no_owner():
    driver = Driver(("work", 0, 1), ("store", 0), grouping="pull")
    driver.placement.want({"work": 2})
    assert driver.plan.active["work"] == (0, 1)
    assert driver.plan.owners["work"] == ()


def test_sources_stay_closed_whatever_is_wanted_later():
    driver = Driver(("work", 0, 1), ("store", 0))
    driver.placement.want({})
    assert driver.plan.admits
    driver.placement.close_sources()
    assert not driver.plan.admits
    driver.placement.want({"work": 2})
    driver.placement.review()
    assert not driver.plan.admits
    assert driver.plan.active["work"] == (0, 1)


def test_what_a_source_is_about_to_send_when_sources_are_closed_is_refused():
    """Else it would come in after a drain has found nothing inside."""
    driver = Driver(("work", 0), ("store", 0))
    driver.placement.want({})
    source = driver.workers.joined(("in", 0)).lanes
    driver.placement.close_sources()
    late = Parcel("work", 0, 1, Births.evenly(1, 0.0), b"")
    assert not source.commit([], [late], Counts(emitted=1))
    driver.join("in", 0)
    driver.placement.close_sources()
    assert ("in", 0) in driver.workers.board.members(), "once is enough"


def test_a_source_that_has_failed_says_so_when_sources_are_closed():
    driver = Driver(("work", 0), ("store", 0), ("in", 0))
    driver.placement.want({})
    driver.workers.board.report_failure(driver.workers.generation, ("in", 0), "no file")
    driver.placement.close_sources()
    assert ("in", 0) in driver.workers.board.members()


WORK = [("work", number) for number in range(4)]


@pytest.fixture
def short_handed():
    """Four workers for six replicas: three of `work`, of which one is needed, and one `store`."""
    driver = Driver()
    board = driver.workers.board
    roles = [("work", 0), ("store", 0), ("work", 1), ("work", 2), ("store", 1), ("work", 3)]
    generation = board.new_generation(roles)
    for worker in range(4):
        driver.workers.joined(board.take_role(generation, worker))
    board.start(generation)
    driver.generation = generation
    return driver


def test_a_worker_that_is_inactive_is_given_a_role_that_is_needed(short_handed):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 1, "store": 2})
    assert set(board.members()) == {("outside", 0), ("work", 0), ("store", 0), ("work", 1)}
    assert board.take_role(driver.generation, 3) == ("store", 1)
    assert driver.plan.active["store"] == (0,), "it has not joined yet"
    driver.join("store", 1)
    driver.placement.review()
    assert driver.plan.active == {"work": (0,), "store": (0, 1)}


def test_a_worker_that_is_active_keeps_its_role_unless_another_is_much_worse_off(short_handed):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2, "store": 2})
    driver.join("store", 1)
    driver.placement.want({"work": 3, "store": 2})
    driver.placement.review()
    assert driver.plan.active == {"work": (0, 1), "store": (0, 1)}
    assert set(board.members()) == {("outside", 0), *WORK[:2], ("store", 0), ("store", 1)}


def test_an_active_worker_finishes_before_it_goes_to_the_bottleneck(short_handed):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 3, "store": 1})
    assert driver.plan.active == {"work": (0, 1, 2), "store": (0,)}
    ends = {number: driver.workers.joined(("work", number)) for number in range(3)}
    for number, end in ends.items():
        end.lanes.hold(driver.plan.lanes(("work", number)))
    driver.placement.want({"store": 2})
    assert driver.plan.active["work"] == (0, 1)
    driver.placement.review()
    assert board.roles()["store", 1] is None, "it has not released its lanes"
    ends[2].lanes.hold(frozenset())
    driver.placement.review()
    assert board.roles()["store", 1] == 3
    assert ("work", 2) not in board.members()


def test_one_worker_fills_one_vacancy(short_handed):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2, "store": 2})
    assert board.take_role(driver.generation, 3) == ("store", 1)
    assert driver.plan.active["work"] == (0, 1)
    driver.placement.want({"work": 4})
    assert driver.plan.active["work"] == (0, 1), "nobody is left over"


@pytest.mark.parametrize("act", ["want", "review", "close_sources"])
def test_a_plan_that_could_not_be_published_is_published_by_the_next_review(monkeypatch, act):
    """As when the disk was full: what was decided meanwhile must not be forgotten."""
    driver = Driver(("work", 0, 1, 2, 3), ("store", 0, 1))
    driver.placement.want({"work": 1})

    def full(_):
        raise BackendUnavailableError("database or disk is full")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(driver.workers.board, "publish", full)
        driver.placement._wanted["work"] = 3
        arguments = [{"work": 3}] if act == "want" else []
        with pytest.raises(BackendUnavailableError):
            getattr(driver.placement, act)(*arguments)
        with pytest.raises(BackendUnavailableError):
            driver.placement.review()
    driver.placement.review()
    assert len(driver.plan.active["work"]) == 3
    assert driver.plan.admits == (act != "close_sources")


def at(generation, executors, *idle):
    """Workers on executors; some more have none."""
    return Places(generation, executors, frozenset(executors.values()) | set(idle))


def test_the_roles_of_workers_that_are_gone_are_given_to_others_at_once(short_handed):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2})
    lanes = driver.plan.owners["store"]
    driver.placement.follow(at(1, {0: "a", 1: "b", 2: "a", 3: "a"}))
    driver.placement.follow(at(1, {0: "a", 2: "a", 3: "a"}))
    assert ("store", 0) not in board.members()
    assert board.roles()["store", 0] == 3, "the only one that was inactive"
    assert driver.plan.owners["store"] == lanes
    driver.join("store", 0)
    driver.placement.review()
    assert driver.plan.active == {"work": (0, 1), "store": (0,)}
    assert board.take_role(driver.generation, 1) == ("work", 2), "it comes back"


@pytest.mark.parametrize("emptied", [True, False])
def test_only_an_executor_that_was_not_to_go_is_a_warning(short_handed, caplog, emptied):
    driver = short_handed
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "b", 3: "b"}))
    if emptied:
        driver.placement.clear(["b"])
        driver.placement.clear([])  # Who ends executors may see that it is gone before we do.
    driver.placement.follow(at(1, {0: "a", 1: "a"}))
    warnings = [each for each in caplog.records if each.levelname == "WARNING"]
    assert ["the executor b is gone" in each.getMessage() for each in warnings] == [True] * (
        not emptied
    )


def test_lanes_of_workers_that_are_gone_go_to_those_that_are_there(short_handed):
    driver = short_handed
    driver.placement.want({"work": 3})
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "b", 3: "b"}))
    driver.placement.follow(at(1, {0: "a", 1: "a"}))
    assert driver.plan.active == {"work": (0,), "store": (0,)}
    assert set(driver.plan.owners["work"]) == {0}


def test_a_source_that_is_gone_gets_a_worker_first_even_one_that_is_active():
    driver = Driver()
    board, put = driver.workers.board, driver.placement
    generation = board.new_generation([("in", 0), ("work", 0), ("store", 0), ("work", 1)])
    for worker in range(4):
        driver.workers.joined(board.take_role(generation, worker))
    board.start(generation)
    put.want({"work": 2})
    assert driver.plan.active == {"work": (0, 1), "store": (0,)}
    put.follow(at(1, {0: "a", 1: "b", 2: "b", 3: "b"}))
    put.follow(at(1, {1: "b", 2: "b", 3: "b"}))
    assert driver.plan.active == {"work": (0,), "store": (0,)}
    put.review()
    assert board.roles()["in", 0] == 3
    driver.join("in", 0)
    put.review()
    assert driver.plan.active == {"work": (0,), "store": (0,)}
    assert board.take_role(generation, 0) == ("work", 1), "it comes back"


def test_an_operator_whose_replicas_are_all_silent_keeps_one_and_others_move_on():
    driver = Driver()
    board = driver.workers.board
    roles = [*WORK, ("store", 0), ("store", 1)]
    generation = board.new_generation(roles)
    for worker in range(len(roles)):
        driver.workers.joined(board.take_role(generation, worker))
    board.start(generation)
    driver.placement.want({"work": 4, "store": 2})
    driver.silent = frozenset({("store", 0), ("store", 1), ("work", 0)})
    driver.placement.review()
    assert driver.plan.active["work"] == (1, 2, 3)
    assert len(driver.plan.active["store"]) == 1
    driver.silent = frozenset()
    driver.placement.review()
    assert driver.plan.active == {"work": (0, 1, 2, 3), "store": (0, 1)}


def test_workers_of_another_generation_are_not_gone(short_handed):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2})
    before = board.roles()
    driver.placement.follow(at(1, dict.fromkeys(range(4), "a")))
    driver.placement.follow(at(2, {0: "a"}))
    driver.placement.follow(at(2, {0: "a", 3: "b"}))
    assert board.roles() == before


def test_who_is_gone_is_gone_also_when_the_board_could_not_be_told_at_first(
    short_handed, monkeypatch
):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2})
    driver.placement.follow(at(1, {0: "a", 1: "b", 2: "a", 3: "a"}))

    def full(_):
        raise BackendUnavailableError("database or disk is full")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(board, "vacate", full)
        with pytest.raises(BackendUnavailableError):
            driver.placement.follow(at(1, dict.fromkeys((0, 2, 3), "a")))
    driver.placement.follow(at(1, dict.fromkeys((0, 2, 3), "a")))
    assert ("store", 0) not in board.members()


def test_replicas_become_active_where_most_others_are(short_handed):
    driver = short_handed
    driver.placement.want({})
    assert driver.plan.active == {"work": (0,), "store": (0,)}
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "b", 3: "a"}))
    driver.placement.want({"work": 2})
    assert driver.plan.active["work"] == (0, 2), "the other one is alone on its executor"


def test_a_task_that_died_alone_keeps_its_role_and_its_place(short_handed):
    """Whoever joins next notes that its predecessor died at its work."""
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2})
    members, roles = board.members(), board.roles()
    driver.placement.follow(at(1, {0: "a", 1: "b", 2: "a", 3: "a"}))
    driver.placement.follow(at(1, {0: "a", 2: "a", 3: "a"}, "b"))
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "a", 3: "a"}, "b"))
    assert (board.members(), board.roles()) == (members, roles)


def test_a_worker_that_is_back_elsewhere_keeps_its_role_and_others_its_lanes_meanwhile(
    short_handed,
):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2})
    roles = board.roles()
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "b", 3: "a"}))
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "a", 3: "a"}))
    assert ("work", 1) not in board.members()
    assert board.roles() == roles
    assert driver.plan.active["work"] == (0, 2)


def deaths_of(workers, operator, lanes):
    """By number of an event that waits: the deaths that were noted on it."""
    taken = workers.joined((operator, 1000), lanes).lanes.take(100)
    return {row["n"]: each.deaths for each in taken for row in events_of(each).table.to_pylist()}


def test_when_an_executor_dies_that_is_noted_on_what_its_workers_may_have_worked_on(short_handed):
    driver = short_handed
    driver.placement.want({"work": 2})
    driver.workers.put([1], lane=0)
    driver.workers.put([2], lane=1)
    for replica in (0, 1):
        driver.workers.joined(("work", replica), [replica])
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "b", 3: "a"}))
    driver.placement.follow(at(1, {0: "a", 1: "a", 3: "a"}))
    assert deaths_of(driver.workers, "work", range(8)) == {1: 0, 2: 1}


def test_a_worker_that_has_joined_elsewhere_before_the_driver_looks_is_left_at_its_work(
    short_handed,
):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2})
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "b", 3: "a"}))
    driver.join("work", 1)
    members = board.members()
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "a", 3: "a"}))
    assert board.members() == members


def test_what_a_worker_did_inside_its_chain_is_suspected_too():
    pipeline = Pipeline("test")
    pipeline.add(len, after=pipeline.source("in"), name="work", pool=2)
    pipeline.add(len, after="work", name="inside", chain=True)
    workers = Workers(pipeline.topology())
    effective = workers.deployment.chains.topology
    layout, lanes = workers.deployment.layout, workers.ledger.lanes
    placement = Placement(effective, layout, workers.board, lanes)
    generation = workers.board.new_generation([("in", 0), ("work", 0), ("work", 1)])
    for worker in range(3):
        workers.joined(workers.board.take_role(generation, worker))
    workers.board.start(generation)
    workers.put([1], operator="inside")
    workers.joined(("inside", 1), [0])
    places = at(generation, {0: "a", 1: "a", 2: "b"})
    placement.follow(places)
    placement.follow(at(generation, {0: "a", 1: "a"}))
    assert ("inside", 1) not in workers.board.members()
    assert deaths_of(workers, "inside", [0]) == {1: 1}


@pytest.fixture
def spread():
    """A source and all seven replicas, on two executors, with one on `b` at work."""
    driver = Driver(pool=4)
    board = driver.workers.board
    roles = [("in", 0), ("work", 0), ("store", 0), *WORK[1:], ("store", 1)]
    generation = board.new_generation(roles)
    for worker in range(len(roles)):
        driver.workers.joined(board.take_role(generation, worker))
    board.start(generation)
    driver.generation = generation
    driver.placement.want({"work": 3})
    driver.placement.follow(
        at(1, {**dict.fromkeys(range(4), "a"), **dict.fromkeys(range(4, 7), "b")})
    )
    return driver


def test_an_executor_that_is_to_go_hands_its_lanes_to_workers_elsewhere(spread):
    driver, board = spread, spread.workers.board
    assert driver.plan.active == {"work": (0, 1, 2), "store": (0,)}
    assert driver.placement.occupation().needed["b"] == 1
    driver.placement.want({"work": 2})
    driver.placement.clear(["b"])
    assert driver.plan.active == {"work": (0, 1), "store": (0,)}
    assert not driver.placement.occupation().needed["b"]
    assert board.roles()["work", 2] == 4, "its worker keeps a role in which it does nothing"


def test_a_replica_there_works_on_until_another_can_take_its_place():
    """Four workers: the only one that is inactive is elsewhere, and gets ready first."""
    driver = Driver()
    board = driver.workers.board
    generation = board.new_generation([("work", 0), ("store", 0), ("work", 1), ("store", 1)])
    for worker in range(4):
        driver.workers.joined(board.take_role(generation, worker))
    board.start(generation)
    driver.placement.want({"work": 2, "store": 1})
    driver.placement.follow(at(1, {0: "a", 1: "a", 2: "b", 3: "a"}))
    driver.placement.clear(["b"])
    assert driver.plan.active["work"] == (0, 1), "nobody else is ready"
    assert board.roles()["store", 1] == 3
    driver.placement.want({"work": 1})
    driver.placement.want({"work": 2})
    assert board.roles()["work", 1] in (2, 3)


def test_a_source_moves_away_from_an_executor_that_is_to_go(spread):
    driver, board = spread, spread.workers.board
    driver.placement.want({"work": 1})
    driver.placement.clear(["a"])
    (source,) = (worker for role, worker in board.roles().items() if role == ("in", 0))
    assert source in (4, 5, 6)
    for _ in range(3):
        for role, worker in board.roles().items():
            if worker in (4, 5, 6):
                driver.workers.joined(role)
        driver.placement.review()
    assert not driver.placement.occupation().needed["a"]
    assert driver.placement.occupation().needed["b"] > 1_000
    on_b = {role for role, worker in board.roles().items() if worker in (4, 5, 6)}
    assert {
        (name, number) for name in ("work", "store") for number in driver.plan.active[name]
    } <= on_b


def test_an_executor_that_is_needed_again_is_used_again(spread):
    driver = spread
    driver.placement.want({"work": 2})
    driver.placement.clear(["b"])
    driver.placement.clear([])
    driver.placement.want({"work": 4})
    assert driver.plan.active["work"] == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "act",
    [
        lambda placement: placement.want({"work": 4}),
        lambda placement: placement.halt(True),
        lambda placement: placement.close_sources(),
        lambda placement: placement.review(),
        lambda placement: placement.clear(["a"]),
        lambda placement: placement.follow(at(1, {0: "a", 1: "b", 2: "a"})),
    ],
)
def test_a_driver_whose_state_is_another_ones_writes_nothing_to_the_board(short_handed, act):
    driver, board = short_handed, short_handed.workers.board
    driver.placement.want({"work": 2})
    driver.placement.follow(at(1, {0: "a", 1: "b", 2: "a", 3: "a"}))
    driver.leave(("work", 0))
    before = board.plan().version, board.roles(), board.members()
    driver.ownership.lost = "another driver has taken over"
    act(driver.placement)
    assert (board.plan().version, board.roles(), board.members()) == before
    driver.ownership.lost = ""
    act(driver.placement)
    driver.placement.review()
    assert (board.plan().version, board.roles(), board.members()) != before
