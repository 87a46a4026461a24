"""Sources that an iterable feeds, on the SQLite backend; Spark only looks for checkpoints."""

import threading
import time

import pandas as pd
import pyarrow as pa
import pytest

from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.backends.sqlite.inbox import SqliteInbox
from elastream.engines.spark.driver import batches as of_driver
from elastream.engines.spark.driver.batches import BatchFeeds, BatchSource, prepare_inbox
from elastream.errors import BackendUnavailableError, EngineError, InvalidInputError
from support.waiting import eventually


@pytest.fixture
def backend(tmp_path):
    made = SqliteBackend(tmp_path)
    made.prepare("pipeline", {"in": OperatorLanes(1)})
    return made


def feed(backend, batches, queue_size=1000):
    prepare_inbox(backend, "in")
    return BatchFeeds(backend, {"in": BatchSource(batches)}, queue_size)


def ended(feeds):
    eventually(lambda: feeds.ended or feeds._errors)
    feeds.check()


def waiting(backend):
    inbox = backend.inbox("in")
    try:
        return inbox.waiting(), inbox.admitted()
    finally:
        inbox.close()


def test_batches_of_every_kind_are_let_in_and_empty_ones_are_left(backend):
    batches = [[{"n": 1}], pa.table({"n": [2, 3]}), pd.DataFrame({"n": [4]}), []]
    ended(feed(backend, batches))
    assert waiting(backend) == (4, 2)


@pytest.mark.usefixtures("spark_session")
def test_the_next_run_counts_on_from_the_last(backend):
    for _ in range(2):
        ended(feed(backend, [[{"n": 1}]] * 3))
    assert waiting(backend) == (6, 5)


def test_a_full_inbox_is_waited_for_and_a_batch_that_was_taken_is_let_in_at_the_end(backend):
    taken = []

    def batches():
        for number in range(100):
            taken.append(number)
            yield [{"n": number}] * 10

    feeds = feed(backend, batches(), queue_size=20)
    eventually(lambda: len(taken) == 3)
    time.sleep(0.2)
    assert not feeds.ended
    feeds.stop()
    assert waiting(backend)[0] == 10 * len(taken) == 30


@pytest.mark.parametrize("port", ["waiting", "admit"])
def test_a_backend_that_is_away_for_a_moment_is_waited_for(port, backend, monkeypatch):
    away, real = iter([BackendUnavailableError("no answer")]), getattr(SqliteInbox, port)

    def flaky(inbox, *arguments):
        for error in away:
            raise error
        return real(inbox, *arguments)

    monkeypatch.setattr(SqliteInbox, port, flaky)
    monkeypatch.setattr(of_driver, "UNAVAILABLE_SECONDS", 0.0)
    ended(feed(backend, [[{"n": 1}]]))
    assert waiting(backend) == (1, 0)


def test_an_iterable_that_waits_for_something_is_waited_for_once(backend, monkeypatch):
    asked, arrives = threading.Event(), threading.Event()

    def batches():
        asked.set()
        arrives.wait(60.0)
        yield [{"n": 1}]

    feeds = feed(backend, batches())
    asked.wait(60.0)
    monkeypatch.setattr(of_driver, "STOP_SECONDS", 0.1)
    feeds.stop()
    monkeypatch.setattr(of_driver, "STOP_SECONDS", 60.0)
    feeds.stop()
    assert not feeds.ended
    arrives.set()
    ended(feeds)
    assert waiting(backend) == (0, -1)


def test_an_iterable_that_fails_is_told_with_its_source(backend):
    def batches():
        yield [{"n": 1}]
        raise OSError("the line is dead")

    feeds = feed(backend, batches())
    with pytest.raises(EngineError, match="source 'in' failed: OSError: the line is dead"):
        ended(feeds)
    assert not feeds.ended
    assert waiting(backend) == (1, 0)


@pytest.mark.usefixtures("spark_session")
def test_what_a_dataframe_has_fed_is_not_mixed_with_batches(backend, tmp_path):
    ended(feed(backend, [[{"n": 1}]]))
    (tmp_path / "feeds" / "in").mkdir(parents=True)
    with pytest.raises(InvalidInputError, match="a DataFrame has fed the source 'in'"):
        prepare_inbox(backend, "in")
