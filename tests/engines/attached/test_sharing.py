"""Queries that share the executors of an application: each scales, or only looks."""

import threading
import time
from types import SimpleNamespace

import pytest

from elastream.control.history import History
from elastream.core.decision import Plan
from elastream.engines.attached import engine, query, sharing
from elastream.engines.attached.query import Tasks
from elastream.engines.attached.sharing import SharedExecutors
from elastream.engines.executors.claims import Claim
from elastream.errors import InvalidInputError
from elastream.running.attach import attach
from support.micro_batches import VirtualCluster
from support.waiting import eventually

SESSION = SimpleNamespace(sparkContext=SimpleNamespace(applicationId="app"))
BOUNDS = (1, 8)


class Cluster(VirtualCluster):
    """Of an application in Spark, without Spark."""

    scalable, ended = True, False
    may_go = threading.Event()
    """Whether executors can be released."""
    may_go.set()

    def __init__(self, session, read_only, quiet):
        super().__init__(time.monotonic, 2, 0.0)
        self.quiet = quiet

    def list(self):
        self.step()
        return super().list()

    def release(self, names):
        return super().release(names if self.may_go.is_set() else ())

    def check_scalable(self):
        if not self.scalable:
            raise InvalidInputError("local mode has no executors")


@pytest.fixture(autouse=True)
def without_spark(monkeypatch):
    monkeypatch.setattr(sharing, "SparkCluster", Cluster)
    monkeypatch.setattr(sharing, "StatusStore", lambda context: None)


def joined(query, advice_only=False):
    return SharedExecutors.join(SESSION, query, BOUNDS, advice_only)


def test_executors_go_only_when_all_queries_of_the_program_are_between_batches(monkeypatch):
    """Also those that nobody scales, and one whose executors are being restored."""
    running = {("app", "not attached"): "its query"}
    monkeypatch.setattr(sharing, "queries_of_this_program", lambda: running)
    asked = []
    monkeypatch.setattr(sharing, "between_batches", lambda jobs, queries: asked.extend(queries))
    shared = joined("scales")
    running["app", "scales"] = "the one that is scaled"
    shared.cluster.quiet()
    shared.leave("scales", restore=True)
    shared.cluster.quiet()
    assert asked == 2 * ["its query", "the one that is scaled"]


def test_a_scaled_query_scales_although_one_that_only_looks_came_first():
    looking = joined("looks", advice_only=True)
    scaled = joined("scales")
    assert scaled is looking
    scaled.fleet.want("scales", 5)
    assert scaled.fleet.settle(30)
    assert len(scaled.fleet.present) == 5
    scaled.leave("scales", restore=True)
    assert len(scaled.fleet.present) == 2
    looking.leave("looks", restore=False)


def test_one_that_only_looks_does_not_change_what_a_scaled_query_has():
    scaled = joined("scales")
    scaled.fleet.want("scales", 1)
    looking = joined("looks", advice_only=True)
    assert scaled.fleet.target == 1
    looking.leave("looks", restore=False)
    assert scaled.fleet.target == 1
    scaled.leave("scales", restore=False)


def test_a_query_that_joins_a_scaled_one_counts_from_the_start():
    first = joined("first")
    first.fleet.want("first", 4)
    second = joined("second")
    assert second.fleet.target == 5
    second.leave("second", restore=True)
    assert first.fleet.target == 4
    first.leave("first", restore=False)


def test_nothing_is_restored_when_the_session_has_ended(monkeypatch):
    """Its executors do not come back, however long one waits."""
    shared = joined("scales")
    shared.fleet.want("scales", 5)
    assert shared.fleet.settle(30)
    monkeypatch.setattr(Cluster, "ended", True)
    monkeypatch.setattr(shared, "_await_restored", lambda: pytest.fail("it waits"))
    shared.leave("scales", restore=True)
    Claim("app", "a pipeline").end()


def test_where_nothing_can_be_scaled_queries_may_only_look(monkeypatch):
    monkeypatch.setattr(Cluster, "scalable", False)
    with pytest.raises(InvalidInputError, match=r"attach: local mode.*advice_only=True"):
        joined("scales")
    looking = joined("looks", advice_only=True)
    with pytest.raises(InvalidInputError, match="advice_only=True"):
        joined("scales")
    with pytest.raises(InvalidInputError, match="already attached"):
        joined("looks", advice_only=True)
    looking.leave("looks", restore=False)


def test_settings_are_read_once_and_not_for_every_plan(monkeypatch):
    """Reading them takes hundreds of calls to the JVM, while the query plans its next batch."""
    reads = []
    monkeypatch.setattr(Cluster, "check_scalable", lambda cluster: reads.append(cluster))
    shared = joined("scales")
    for _ in range(5):
        shared.scale("scales")
    assert len(reads) == 1
    shared.leave("scales", restore=False)


def test_one_that_only_looks_lets_a_pipeline_scale():
    looking = joined("looks", advice_only=True)
    Claim("app", "a pipeline").end()
    looking.leave("looks", restore=True)


def test_one_that_is_switched_to_scaling_claims_the_executors_and_restores_them():
    shared = joined("looks", advice_only=True)
    joined("also looks", advice_only=True)
    pipeline = Claim("app", "a pipeline")
    with pytest.raises(InvalidInputError, match="a pipeline scales the executors"):
        shared.scale("looks")
    assert shared.fleet.share("looks") == 2, "it still only looks"
    pipeline.end()
    for count in (4, 5):
        shared.scale("looks")
        shared.fleet.want("looks", count)
    with pytest.raises(InvalidInputError, match="an attached query scales the executors"):
        Claim("app", "a pipeline")
    assert shared.fleet.settle(30)
    shared.leave("looks", restore=True)
    assert len(shared.fleet.present) == 2
    Claim("app", "a pipeline").end()
    shared.leave("also looks", restore=True)


@pytest.fixture
def orders(monkeypatch):
    """A query that can be attached to."""
    view = SimpleNamespace(
        id="1", name="orders", running=True, trigger_seconds=10.0, position=None,
        batches_waiting=None, tasks=lambda: Tasks(0, 0),
    )  # fmt: skip
    streams = SimpleNamespace(addListener=lambda one: None, removeListener=lambda one: None)
    session = SimpleNamespace(sparkContext=SESSION.sparkContext, streams=streams)
    monkeypatch.setattr(query, "session_of", lambda query: session)
    monkeypatch.setattr(engine, "QueryView", lambda session, query: view)
    monkeypatch.setattr(engine, "Listener", lambda query, told: None)
    return view


def test_a_scaler_for_advice_only_restores_what_it_has_changed_nevertheless(orders):
    scaler = attach(orders, predictor="lr", td=60.0, advice_only=True)
    scaler.engine.apply(Plan({"orders": 5}))  # As after the switch on its page.
    with pytest.raises(InvalidInputError, match="an attached query scales the executors"):
        Claim("app", "a pipeline")
    assert scaler.engine.fleet.settle(30)
    scaler.stop(restore=True)
    assert len(scaler.engine.fleet.present) == 2
    Claim("app", "a pipeline").end()


def test_a_scaler_that_is_interrupted_while_it_restores_leaves_nothing_open(
    orders, monkeypatch, tmp_path
):
    closed = []
    monkeypatch.setattr(History, "close", lambda history: closed.append(history))
    scaler = attach(orders, predictor="lr", td=60.0, history=tmp_path / "orders.db")
    scaler.engine.apply(Plan({"orders": 5}))

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(scaler.engine.fleet, "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scaler.stop(restore=True)
    assert closed
    Claim("app", "a pipeline").end()


def test_bounds_must_be_the_same():
    shared = joined("first")
    with pytest.raises(InvalidInputError, match=r"shares them with \(1, 8\)"):
        SharedExecutors.join(SESSION, "second", (1, 3), True)
    shared.leave("first", restore=False)


@pytest.mark.parametrize("others", [[], ["looks"]])
def test_while_executors_are_restored_nobody_can_attach_and_is_told_how_long(others):
    shared = joined("scales")
    for other in others:
        joined(other, advice_only=True)
    shared.fleet.want("scales", 5)
    assert shared.fleet.settle(30)
    Cluster.may_go.clear()
    try:
        stops = threading.Thread(target=shared.leave, args=("scales", True))
        stops.start()
        eventually(lambda: shared.restoring)
        for query in ("scales", "another"):
            with pytest.raises(
                InvalidInputError, match=r"going back to 2, .* stop has returned, .* 60 s"
            ):
                joined(query)
        with pytest.raises(InvalidInputError, match="going back to what they were"):
            Claim("app", "a pipeline")
        for other in others:
            with pytest.raises(InvalidInputError, match="going back to 2"):
                shared.scale(other)
        # Those that only looked can leave meanwhile: the restore is not cut short.
        for other in others:
            shared.leave(other, restore=False)
    finally:
        Cluster.may_go.set()
    stops.join()
    assert len(shared.fleet.present) == 2
    again = joined("scales")
    assert again is not shared
    again.leave("scales", restore=False)
