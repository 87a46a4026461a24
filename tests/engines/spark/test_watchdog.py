"""Functions that hang, and events that processes die of."""

import os
import signal
import threading
import time
from contextlib import contextmanager, nullcontext

import pyarrow as pa
import pytest

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.worker import quarantine as quarantine_module
from elastream.engines.spark.worker import watchdog as watchdog_module
from elastream.engines.spark.worker.execution import events_of
from elastream.engines.spark.worker.quarantine import DEATHS, Quarantine, SetupError
from elastream.engines.spark.worker.watchdog import TIMED_OUT, Watchdog
from support.waiting import eventually
from support.workers import Workers, rows_of

NAME = ("work", 0)

TIMEOUT = 0.1


@pytest.fixture
def workers():
    pipeline = Pipeline("test")
    pipeline.add(deadly, after=pipeline.source("in"), name="work", pool=1, lanes=1)
    pipeline.add(len, after="work", name="end", pool=1, lanes=1)
    return Workers(pipeline.topology())


def deadly(rows: list):
    """Process events, but for the number 4."""
    if any(row["n"] == 4 for row in rows):
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


def test_a_function_that_runs_long_is_known_to_be_well(workers, monkeypatch):
    monkeypatch.setattr(watchdog_module, "LOOK_SECONDS", 0.02)
    workers.joined(NAME)
    before = workers.board.members()[NAME].heartbeat
    with Watchdog(NAME, workers.backend.connect, timeouts=()) as watchdog:
        watchdog.function_begins("work", None)
        eventually(lambda: workers.board.members()[NAME].busy_for > 0.1)
        watchdog.function_ends()
        eventually(lambda: workers.board.members()[NAME].busy_for == 0)
        quiet = workers.board.members()[NAME].heartbeat
        time.sleep(0.1)
        assert workers.board.members()[NAME].heartbeat == quiet
    assert quiet > before


def test_a_function_that_hangs_is_ended_and_one_that_does_not_is_not(workers, monkeypatch):
    now = 0.0
    monkeypatch.setattr(watchdog_module, "monotonic", lambda: now)
    ended = threading.Event()
    codes = []

    def end(code):
        codes.append(code)
        ended.set()

    with Watchdog(NAME, workers.backend.connect, timeouts=[TIMEOUT], end=end) as watchdog:
        for _ in range(4):
            watchdog.function_begins("work", TIMEOUT)
            now += 0.9 * TIMEOUT
            time.sleep(TIMEOUT / 2)
            watchdog.function_ends()
        assert not ended.wait(2 * TIMEOUT)
        watchdog.function_begins("work", TIMEOUT)
        now += 1.1 * TIMEOUT
        assert ended.wait(60)
    assert codes[0] == TIMED_OUT


def test_a_watchdog_that_cannot_report_goes_on_watching(workers, monkeypatch):
    monkeypatch.setattr(watchdog_module, "LOOK_SECONDS", 0.02)
    ended, attempts = threading.Event(), []

    def connect():
        attempts.append(1)
        raise ZeroDivisionError("no")

    with Watchdog(NAME, connect, timeouts=[2.0], end=lambda code: ended.set()) as watchdog:
        watchdog.function_begins("work", 0.5)
        assert ended.wait(20)
    assert len(attempts) > 1


def outcomes(call, numbers, timeout=None):
    quarantine = Quarantine(nullcontext, call, timeout)
    found = quarantine.run(pa.table({"n": numbers}))
    return [each if isinstance(each, str) else each["n"].to_pylist() for each in found]


def test_events_in_quarantine_are_tried_one_by_one():
    def call(table, _):
        (number,) = table["n"].to_pylist()
        if number == 2:
            raise ValueError("two")
        if number == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        if number == 4:
            os._exit(9)
        return table

    assert outcomes(call, [1, 2, 3, 4, 5]) == [
        [1], "ValueError: two", "the process died (SIGTERM)", "the process died (exit code 9)", [5],
    ]  # fmt: skip


def test_an_event_that_takes_too_long_in_quarantine_is_given_up():
    def call(table, _):
        if table["n"].to_pylist() == [2]:
            time.sleep(60)
        return table

    assert outcomes(call, [1, 2, 3], timeout=3.0) == [[1], "it took longer than 3 s", [3]]


def test_setting_up_may_take_longer_than_an_event():
    @contextmanager
    def slow():
        time.sleep(1.0)
        yield

    quarantine = Quarantine(slow, lambda table, _: table, timeout=0.5)
    assert quarantine.run(pa.table({"n": [1]})) == [pa.table({"n": [1]})]


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        (lambda: [].pop(), "IndexError: pop from empty list"),
        (lambda: os._exit(9), r"the process died \(exit code 9\)"),
    ],
)
def test_no_event_is_blamed_for_what_cannot_be_set_up(fail, reason):
    @contextmanager
    def failing():
        fail()
        yield

    with pytest.raises(SetupError, match=f"could not be set up again: {reason}"):
        Quarantine(failing, lambda table, _: table).run(pa.table({"n": [1, 2]}))


def test_a_child_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(quarantine_module, "TEAR_DOWN_SECONDS", 0.1)

    @contextmanager
    def clinging():
        yield
        time.sleep(3600)

    quarantine = Quarantine(clinging, lambda table, _: table)
    assert quarantine.run(pa.table({"n": [1]})) == [pa.table({"n": [1]})]


def test_events_that_processes_died_of_are_found_and_set_aside(workers):
    workers.put(range(8))
    workers.plan(work=(0,), end=(0,))
    for _ in range(DEATHS + 1):
        end = workers.joined(NAME, [0])
    assert [each.deaths for each in end.lanes.take(100)] == [DEATHS]
    with workers.running(NAME):
        eventually(lambda: workers.waiting("end") == 7)
        eventually(lambda: workers.waiting("work") == 0)
    (letter,) = workers.dead_letters.read()
    assert (letter.operator, letter.error) == ("work", "the process died (SIGKILL)")
    assert rows_of(letter) == [{"n": 4}]
    assert workers.ledger.counts(NAME).processed == 7
    end = workers.joined(("end", 0), [0])
    taken = end.lanes.take(100)
    assert [row["n"] for each in taken for row in events_of(each).table.to_pylist()] == [
        0, 1, 2, 3, 5, 6, 7,
    ]  # fmt: skip


def test_an_event_that_kills_in_a_condition_is_found_too():
    def deadly_condition(table):
        deadly(table.to_pylist())
        return [True] * table.num_rows

    pipeline = Pipeline("test")
    source = pipeline.source("in")
    pipeline.add(lambda rows: rows, after=source, name="work", pool=1, lanes=1)
    pipeline.add(len, after="work", name="end", pool=1, lanes=1, when=deadly_condition)
    workers = Workers(pipeline.topology())
    workers.put([3, 4, 5])
    workers.plan(work=(0,), end=(0,))
    for _ in range(DEATHS + 1):
        workers.joined(NAME, [0])
    with workers.running(NAME):
        eventually(lambda: workers.waiting("end") == 2)
    (letter,) = workers.dead_letters.read()
    assert (rows_of(letter), letter.error) == ([{"n": 4}], "the process died (SIGKILL)")


def test_a_replica_is_known_to_be_well_while_its_events_are_in_quarantine(monkeypatch, tmp_path):
    monkeypatch.setattr(watchdog_module, "LOOK_SECONDS", 0.02)
    seen = tmp_path / "seen"

    def slow(rows: list):
        while not seen.exists():
            time.sleep(0.01)
        return rows

    pipeline = Pipeline("test")
    pipeline.add(slow, after=pipeline.source("in"), name="work", pool=1, lanes=1)
    workers = Workers(pipeline.topology())
    workers.put([1])
    workers.plan(work=(0,))
    for _ in range(DEATHS + 1):
        workers.joined(NAME, [0])
    with workers.running(NAME):
        eventually(lambda: workers.board.members()[NAME].busy_for > 0)
        seen.touch()
        eventually(lambda: workers.waiting("work") == 0)
