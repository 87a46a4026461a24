"""The end of a sampling window, also when something fails there."""

import pytest

from elastream.core.chains import Chains
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.driver import statistics
from elastream.engines.spark.driver.condition import Condition
from elastream.engines.spark.driver.statistics import Intervals
from elastream.engines.spark.driver.windows import Windows
from elastream.errors import BackendUnavailableError
from support.pipelines import line
from support.workers import Workers


class Run:
    """The windows of a run with one replica; the test says what fails."""

    def __init__(self):
        topology = line("work")
        self.workers = Workers(topology)
        self.board, self.dead_letters = self.workers.board, self.workers.dead_letters
        self.replica = self.workers.joined(("work", 0))
        self.told, self.reviews = [], 0
        self.intervals = Intervals(
            Chains.planned(topology),
            self.dead_letters,
            self.workers.ledger.totals(),
            lambda members: Condition(LanePlan({"work": (0,)}), {"work": 1}, members, frozenset()),
            lambda duration: None,
            sample=1.0,
        )
        self.windows = Windows(self.intervals, self.board, (), 100, self.review)
        self.windows.watch(self.told.append)

    def review(self):
        self.reviews += 1

    def process(self, events, *errors):
        letters = [DeadLetter("work", 1, error, b"") for error in errors]
        assert self.replica.lanes.commit([], [], Counts(processed=events), letters)

    def end_window(self, arrived=1.0):
        self.windows.ended(1.0, self.workers.ledger.totals(), {"in": (arrived,)})


def refuse(*_, **__):
    raise BackendUnavailableError("not now")


@pytest.mark.parametrize(
    ("what", "method"),
    [
        (lambda run: run.board, "members"),
        (lambda run: statistics, "interval_stats"),
        (lambda run: run.board, "probe"),
        (lambda run: run.board, "failures"),
        (lambda run: run.dead_letters, "errors"),
    ],
)
def test_what_a_window_that_fails_could_not_tell_is_told_by_the_next(monkeypatch, what, method):
    run = Run()
    run.process(1)
    run.end_window()
    run.process(5, "ValueError: no")
    run.replica = run.workers.joined(("work", 0))
    with monkeypatch.context() as broken:
        broken.setattr(what(run), method, refuse)
        with pytest.raises(BackendUnavailableError):
            run.end_window(arrived=6.0)
    run.process(2)
    run.end_window(arrived=2.0)
    _, stats = run.told
    work = stats.operators["work"]
    assert (stats.interval, stats.duration, stats.sources["in"].samples) == (1, 2.0, (6.0, 2.0))
    assert (work.processed, work.errors, work.restarted) == (7, {"ValueError: no": 1}, 1)


def test_dead_letters_that_cannot_be_read_do_not_keep_a_run_from_being_looked_after(monkeypatch):
    run, probes = Run(), []
    monkeypatch.setattr(run.dead_letters, "errors", refuse)
    monkeypatch.setattr(run.board, "probe", lambda: probes.append(1))
    with pytest.raises(BackendUnavailableError):
        run.end_window()
    assert (len(probes), run.reviews) == (1, 1)
