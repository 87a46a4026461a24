import numpy as np
import pyarrow as pa
import pytest

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.worker import trace_player
from elastream.engines.spark.worker.trace_player import LARGEST_BATCH, LEAST_BATCH, TraceSource
from support.workers import Workers

WALL = 1_700_000_000.0


@pytest.fixture
def source():
    return TraceSource(make=None, step=0.5, rates=np.array([10.0, 20.0, 0.0]))


def test_events_come_at_the_rates_of_the_trace(source):
    assert [source.due(seconds) for seconds in (0.0, 0.25, 0.5, 1.0, 1.5, 9.0)] == [
        0, 2, 5, 15, 15, 15,
    ]  # fmt: skip


def test_a_source_knows_when_it_had_sent_so_many(source):
    assert source.seconds_at(0) == 0
    assert source.seconds_at(5) == 0.5
    assert source.seconds_at(10) == 0.75


class Clocks:
    """The clock on the wall, which somebody may set, and the one that nobody can."""

    def __init__(self, monkeypatch):
        self.passed = 0.0
        self.set_by = 0.0
        monkeypatch.setattr(trace_player, "monotonic", lambda: 50.0 + self.passed)
        monkeypatch.setattr(trace_player, "time", lambda: WALL + self.passed + self.set_by)


@pytest.fixture
def clocks(monkeypatch):
    return Clocks(monkeypatch)


def numbered(first, count):
    return pa.table({"id": range(first, first + count)})


class Player:
    """A player whose steps are taken by hand, with 100 events per second for ten seconds."""

    def __init__(self, rate=100.0, **options):
        pipeline = Pipeline("test")
        pipeline.add(len, after=pipeline.source("in"), name="work", pool=1, lanes=1)
        traces = {"in": TraceSource(numbered, 1.0, np.full(10, rate))}
        self.workers = Workers(pipeline.topology(), traces, **options)
        self.workers.plan(work=(0,))
        self.start()

    def start(self):
        self.member = self.workers.deployment.member(
            ("in", 0), self.workers.backend.connect(), self.workers.generation
        )
        self.member.lanes.join(("in", 0), self.workers.generation)
        self.follow()

    def follow(self):
        self.member.plan = self.workers.board.plan()
        self.member.router.follow(self.member.plan)
        self.member.pressure.look_again()

    def step(self):
        """Until nothing more is due."""
        for _ in range(20):
            if self.member.step() > 0:
                return
        raise AssertionError("it never waits")

    def taken(self):
        """Take out what it has sent: numbers and births."""
        end = self.workers.joined(("work", 0), [0])
        taken = end.lanes.take(10**6)
        assert end.lanes.commit(taken, [], Counts())
        self.member.pressure.look_again()
        return (
            [n for each in taken for n in from_bytes(each.data)["id"].to_pylist()],
            [at for each in taken for at in each.births.times().tolist()],
        )

    @property
    def counts(self):
        return self.workers.ledger.counts(("in", 0))


def test_a_player_sends_what_is_due_and_every_event_has_its_time(clocks):
    player = Player()
    player.step()
    for clocks.passed in (0.1, 0.25, 1.0):
        player.step()
    numbers, births = player.taken()
    assert numbers == list(range(100))
    assert births == pytest.approx([WALL + n / 100 for n in range(100)], abs=1e-5)
    assert (player.counts.processed, player.counts.emitted) == (100, 100)
    assert player.counts.sent == {"work": 100}


def test_setting_the_clock_on_the_wall_back_repeats_nothing(clocks):
    player = Player()
    player.step()
    clocks.passed = 3.0
    player.step()
    clocks.set_by = -2.0
    player.step()
    assert player.counts.emitted == 300
    clocks.passed = 3.5
    player.step()
    numbers, births = player.taken()
    assert numbers == list(range(350))
    assert births[-1] == pytest.approx(WALL + 3.49 - 2.0, abs=1e-5), "as clocks say at that moment"


def test_setting_the_clock_on_the_wall_forward_skips_nothing(clocks):
    player = Player()
    player.step()
    clocks.passed, clocks.set_by = 1.0, 3600.0
    player.step()
    assert player.taken()[0] == list(range(100))


def test_what_finds_no_room_has_arrived_and_is_sent_later_with_its_old_time(clocks):
    player = Player(queue_size=50)
    player.step()
    for clocks.passed in (0.6, 1.0, 2.0):
        player.member.pressure.look_again()
        player.step()
    assert (player.counts.processed, player.counts.emitted) == (200, 60)
    assert player.taken()[0] == list(range(60))
    player.step()
    numbers, births = player.taken()
    assert numbers == list(range(60, 200))
    assert births[0] == pytest.approx(WALL + 0.6, abs=1e-5)
    assert (player.counts.processed, player.counts.emitted) == (200, 200)


def test_a_player_goes_on_where_the_last_one_stopped(clocks):
    player = Player(queue_size=50)
    player.step()
    for clocks.passed in (0.6, 1.0):
        player.member.pressure.look_again()
        player.step()
    before = player.taken()[0]
    clocks.passed = 500.0
    player.start()
    player.step()
    clocks.passed = 501.0
    player.step()
    # The trace stood still in between, and no number is left out.
    assert before + player.taken()[0] == list(range(200))
    assert (player.counts.processed, player.counts.emitted) == (200, 200)


def test_large_amounts_are_sent_in_batches(clocks):
    player = Player(rate=1000.0)
    player.step()
    clocks.passed = 6.0
    assert player.member.step() == 0.0, "there is more"
    assert player.counts.emitted == LEAST_BATCH
    player.step()
    assert player.counts.emitted == 6000


@pytest.mark.parametrize(
    ("rate", "largest"), [(1_000.0, LEAST_BATCH), (200_000.0, 4_000), (5_000_000.0, LARGEST_BATCH)]
)
def test_many_events_come_in_large_batches_and_few_in_small_ones(clocks, rate, largest):
    player = Player(rate)
    player.step()
    clocks.passed = 5.0
    player.member.step()
    assert player.counts.emitted == largest


def test_nothing_comes_before_the_first_plan_and_after_the_sources_are_closed(clocks):
    player = Player()
    player.workers.plan()
    player.follow()
    clocks.passed = 1.0
    player.step()
    assert player.counts.emitted == 0
    player.workers.plan(work=(0,))
    player.follow()
    player.step()
    clocks.passed = 2.0
    player.step()
    assert player.counts.emitted == 100, "the trace begins with the first plan"
    player.workers.plan(work=(0,), admits=False)
    player.follow()
    clocks.passed = 3.0
    player.step()
    assert player.counts.emitted == player.counts.processed == 100


def test_what_a_player_could_not_commit_is_sent_by_whoever_replaced_it(clocks):
    player = Player()
    player.step()
    clocks.passed = 1.0
    player.workers.joined(("in", 0))
    player.step()
    assert player.counts.emitted == 0
    assert player.taken()[0] == []
