"""What replicas let producers know: the grouping `osg`, and any other that wants to hear."""

import threading
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from elastream.core.groupings.base import (
    Grouping,
    Routing,
    SketchReport,
    SyncReply,
    SyncRequest,
)
from elastream.core.groupings.osg import Osg
from elastream.core.groupings.osg_published import OsgPublished, Phase
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel, Requests
from elastream.engines.spark.births import Births
from elastream.engines.spark.worker import watchdog
from elastream.engines.spark.worker.events import Events
from support.waiting import eventually
from support.workers import Workers

SECONDS = {"cheap": 0.001, "dear": 0.01}
REPLICAS = [("work", 0), ("work", 1)]


class Clock(threading.local):
    """The time of one thread, which passes only inside the function."""

    now = 0.0


CLOCK = Clock()


@pytest.fixture(autouse=True)
def _exact_costs(monkeypatch):
    monkeypatch.setattr(watchdog, "monotonic", lambda: CLOCK.now)


def work(table):
    CLOCK.now += sum(SECONDS[word] for word in table["word"].to_pylist())


def workers_of(grouping, function=work):
    pipeline = Pipeline("words")
    pipeline.add(
        function,
        after=pipeline.source("in"),
        name="work",
        pool=2,
        grouping=grouping,
        key="word",
        execution_time=0.001,
    )
    workers = Workers(pipeline.topology())
    workers.plan(work=(0, 1))
    return workers


class Producer:
    """The source, whose steps are taken by hand."""

    def __init__(self, workers):
        self.workers = workers
        self.connection = workers.joined(("in", 0))
        self.router = workers.deployment.member(("in", 0), self.connection, 1).router
        self.router.follow(workers.board.plan())
        self.heard = 0

    def send(self, words):
        events = Events(pa.table({"word": words}), Births.evenly(len(words), time.time()))
        parcels = self.router.emission([self.router.divide(events)]).parcels
        assert self.connection.lanes.commit([], parcels, Counts())
        return parcels

    def listen(self):
        self.heard, news = self.workers.board.feedback(("in", 0), ["work"], self.heard)
        for operator, feedback in news:
            self.router.learn(operator, feedback)
        return [feedback for _, feedback in news]


def test_a_producer_learns_what_values_cost_each_replica():
    workers = workers_of(Osg())
    producer = Producer(workers)
    with workers.running(*REPLICAS):
        for _ in range(400):
            producer.send(["cheap", "cheap", "dear", "dear"] * 8)
            eventually(lambda: workers.waiting("work") <= 64)
            producer.listen()
            if producer.router.state("work").known.all():
                break
    state = producer.router.state("work")
    assert state.known.all()
    # Every replica has a cell where only dear words are, and one where only cheap ones are.
    costs = state.time / np.maximum(state.frequency, 1)
    assert costs.max(axis=1) == pytest.approx(SECONDS["dear"])
    assert np.where(state.frequency > 0, costs, np.inf).min(axis=1) == pytest.approx(0.001)


@dataclass(frozen=True)
class Diary:
    """The replica's side of `Curious`: reports how often it was told, and answers requests."""

    replica: int
    told: tuple = ()

    def execute(self, keys, times, requests=()):
        keys = [str(key) for key in keys]
        entry = tuple(keys), tuple(times), tuple(requests)
        answers = [
            SyncReply(self.replica, request.round_number, float(request.position))
            for request in requests
        ]
        counts = np.array([float(len(keys))])
        report = SketchReport(self.replica, counts, np.array([sum(times)]))
        return Diary(self.replica, (*self.told, entry)), (*answers, report)


@dataclass(frozen=True)
class Curious(Grouping):
    """A grouping that no engine has ever heard of: all events go to the first active replica."""

    name = "curious"
    needs_key = True
    listens_to = frozenset({SketchReport, SyncReply})

    def start(self, pool, producer=0):
        return 0

    def route(self, state, batch, active):
        first = int(active[0])
        request = SyncRequest(batch.count - 1, first, round_number=state, estimate=0.0)
        return Routing(np.full(batch.count, first), state + 1, (request,))

    def replica_side(self, replica):
        return Diary(replica)


def feedback_for(workers, producer):
    return [each for _, each in workers.board.feedback(producer, ["work"], 0)[1]]


def test_a_grouping_says_itself_what_its_replicas_do():
    workers = workers_of(Curious())
    producer = Producer(workers)
    with workers.running(*REPLICAS):
        (parcel,) = producer.send(["cheap", "dear", "cheap", "dear"])
        assert parcel.requests == Requests(("in", 0), (SyncRequest(3, 0, 0, 0.0),))
        eventually(lambda: workers.ledger.counts(("work", 0)).processed == 4)
        eventually(lambda: len(feedback_for(workers, ("in", 0))) == 2)
        told = feedback_for(workers, ("in", 0))
        # What is not an answer is for every producer.
        (report,) = feedback_for(workers, ("elsewhere", 0))
    answers = [each for each in told if isinstance(each, SyncReply)]
    assert answers == [SyncReply(0, round_number=0, difference=3.0)]
    assert isinstance(report, SketchReport)
    assert report.time[0] == pytest.approx(2 * sum(SECONDS.values()))


def put(workers, words, requests):
    data = to_bytes(pa.table({"word": words}))
    births = Births.evenly(len(words), time.time())
    parcel = Parcel("work", 0, len(words), births, data, requests=requests)
    assert workers.joined(("in", 0)).lanes.commit([], [parcel], Counts())


def test_a_request_to_another_replica_is_left_unanswered():
    """Its events have come to this one with their lane; the producer will ask again."""
    workers = workers_of(Curious())
    requests = Requests(
        ("in", 0), (SyncRequest(0, 1, round_number=7, estimate=0.0), SyncRequest(1, 0, 8, 0.0))
    )
    put(workers, ["cheap", "cheap"], requests)
    workers.plan(work=(0,), owners={"work": (0,) * 8})
    with workers.running(*REPLICAS):
        eventually(lambda: len(feedback_for(workers, ("in", 0))) == 2)
        told = feedback_for(workers, ("in", 0))
    answers = [each for each in told if isinstance(each, SyncReply)]
    assert [each.round_number for each in answers] == [8]


def test_a_producer_asks_again_after_a_plan_change():
    """The lanes of the second replica go to the first one for a while, and a request with them."""
    workers = workers_of(OsgPublished())
    producer = Producer(workers)
    producer.send(["cheap"] * 2)
    cells = np.ones(producer.router.state("work").frequency.shape[1])
    for replica in (0, 1):
        producer.router.learn("work", SketchReport(replica, cells, 0.001 * cells))
    producer.send(["cheap"] * 4)

    def phase():
        producer.listen()
        return producer.router.state("work").phase

    assert phase() is Phase.WAIT_ALL
    workers.plan(work=(0,), owners={"work": (0,) * 8})
    producer.router.follow(workers.board.plan())
    with workers.running(*REPLICAS):
        eventually(lambda: workers.waiting("work") == 0)
        workers.plan(work=(0, 1))
        producer.router.follow(workers.board.plan())
        assert phase() is Phase.SEND_ALL
        producer.send(["cheap"] * 4)
        eventually(lambda: phase() is Phase.RUN)


def test_events_that_nobody_asked_about_answer_nobody():
    workers = workers_of(Osg())
    put(workers, ["cheap"], None)
    with workers.running(*REPLICAS):
        eventually(lambda: workers.waiting("work") == 0)
    assert feedback_for(workers, ("in", 0)) == []


def test_what_was_not_committed_is_not_reported():
    workers = workers_of(Curious(), lambda table: workers.joined(("work", 0)) and None)
    put(workers, ["cheap"], None)
    workers.plan(work=(0,), owners={"work": (0,) * 8})
    with workers.running(("work", 0)) as (thread,):
        thread.join(timeout=10)
        assert not thread.is_alive(), "somebody else has taken its place meanwhile"
        assert feedback_for(workers, ("in", 0)) == []
        assert workers.waiting("work") == 1
