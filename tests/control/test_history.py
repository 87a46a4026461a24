import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from elastream.control import ControlLoop
from elastream.control.history import History
from elastream.control.history_reader import HistoryReader, last_replicas
from elastream.control.loop import Cycle, Outcome
from elastream.core.decision import Change, Reason
from elastream.core.stats import ExecutorStats, Latency
from elastream.errors import InvalidInputError
from elastream.policies.pa_sps import PaSps
from elastream.predictors import PREDICTORS
from support.engines import PlaybackEngine
from support.pipelines import interval, line

LINE = line("clean", "store")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def record(path, script, td=30.0, **settings):
    history = History(path, **settings)
    engine = PlaybackEngine(LINE, script)
    loop = ControlLoop(engine, PaSps(), PREDICTORS["basic"](), td=td, record=history.record)
    list(loop.run(len(script)))
    history.close()
    return HistoryReader(path)


def steady(*events):
    return [interval(LINE, n, number=i) for i, n in enumerate(events)]


def test_a_cycle_can_be_read_back_with_its_reasons(path):
    latency = Latency(100, 0.5, 0.4, 0.9, 1.2)
    history = record(path, [interval(LINE, 9000, latency=latency)])
    (cycle,) = history.cycles()
    assert (cycle["input"], cycle["forecast"], cycle["model"]) == (9000, 9000, "basic")
    assert (cycle["outcome"], cycle["latency_p99"]) == ("changed", 1.2)
    change = cycle["changes"][0]
    assert (change["operator"], change["before"], change["after"]) == ("clean", 1, 3)
    assert change["reasons"] == "300 events/s expected (basic), 10 ms each"
    assert change["facts"]["expected load"]["rate"] == 300


def test_executors_are_recorded_where_there_are_any(path):
    on = ExecutorStats(3, 90.0, slots=4, beside=1)
    history = record(path, [interval(LINE, 9000, executors=on), interval(LINE, 9000, number=1)])
    assert [(row["executors"], row["executor_seconds"]) for row in history.cycles()] == [
        (3, 90.0),
        (None, None),
    ]


def test_operators_carry_what_was_measured_proposed_and_planned(path):
    clean, store = record(path, steady(9000)).operators()
    assert (clean["operator"], store["operator"]) == ("clean", "store")
    assert (clean["active"], clean["proposed"], clean["planned"]) == (1, 3, 3)
    assert clean["busy"] == pytest.approx(90)


def test_the_replicas_that_were_planned_last_are_known(path):
    assert last_replicas(path) == {}
    record(path, steady(3000, 9000))
    assert last_replicas(path) == {"clean": 3, "store": 3}
    assert last_replicas(path.parent / "none.db") == {}


def test_samples_are_what_models_train_on(path):
    samples = record(path, steady(3000, 6000)).samples()
    np.testing.assert_array_equal(samples, [1000] * 3 + [2000] * 3)


def test_a_failed_cycle_is_recorded_too(path):
    (cycle,) = record(path, [RuntimeError("lost")]).cycles()
    assert (cycle["outcome"], cycle["note"], cycle["input"]) == (
        "failed",
        "RuntimeError: lost",
        None,
    )


def test_what_is_too_old_is_removed_whole(path):
    clock = iter(np.arange(0.0, 1000.0, 10.0))
    history = record(path, steady(*range(1000, 1010)), keep=55.0, time_of_day=lambda: next(clock))
    # Every cycle asks for the time twice: when it is, and what is too old.
    assert [cycle["input"] for cycle in history.cycles()] == [1007, 1008, 1009]
    assert len(history.samples()) == 9
    assert len(list(history.operators())) == 6


def test_short_cycles_that_change_nothing_are_added_up(path):
    script = [
        interval(LINE, 3, number=i, td=0.25, active=3 if i > 9 else 1, et=0.01) for i in range(16)
    ]
    history = record(path, script, td=0.25)
    cycles = list(history.cycles())
    assert {cycle["outcome"] for cycle in cycles} >= {"unchanged"}
    assert sum(cycle["input"] for cycle in cycles) == 48
    assert sum(cycle["td"] for cycle in cycles) == 4.0
    assert len(cycles) < 12
    quiet = [cycle for cycle in cycles if cycle["outcome"] == "unchanged"]
    assert quiet[0]["td"] == 1.0
    assert len(history.samples()) == 48


def cycles_of(number, seconds=0.25, **more):
    """Cycles that ask for the same, each with its own reason."""
    for index in range(number):
        stats = interval(LINE, 3, number=index, td=seconds)
        changed = [Change("clean", 1, 3, (Reason("load", {}, f"{index} queued"),))]
        cycle = Cycle(seconds * index, Outcome.CHANGED, stats=stats, changes=tuple(changed))
        yield replace(cycle, **more)


@pytest.mark.parametrize(
    "repeated",
    [
        {},
        {"outcome": Outcome.ADVISED},
        {"outcome": Outcome.UNCHANGED, "changes": (), "note": "paused"},
        {"outcome": Outcome.FAILED, "changes": (), "note": "ValueError: no such operator"},
        {"outcome": Outcome.SKIPPED, "changes": (), "note": "there is 1 sample so far"},
    ],
)
def test_what_is_said_again_and_again_is_recorded_once_and_its_events_added_up(path, repeated):
    history = History(path)
    for cycle in cycles_of(17, **repeated):
        history.record(cycle)
    history.close()
    cycles = list(HistoryReader(path).cycles())
    assert [cycle["td"] for cycle in cycles] == [0.25] + [1.0] * 4
    assert sum(cycle["input"] for cycle in cycles) == 51
    assert {cycle["note"] for cycle in cycles} == {repeated.get("note", "")}
    first = [change["reasons"] for cycle in cycles for change in cycle["changes"]]
    assert first == ([] if "changes" in repeated else ["0 queued"])


def test_an_engine_that_fails_again_and_again_is_recorded_once_a_second(path):
    history = History(path)
    for number in range(17):
        history.record(Cycle(0.25 * number, Outcome.FAILED, "RuntimeError: lost"))
    history.close()
    assert [cycle["time"] for cycle in HistoryReader(path).cycles()] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_what_is_held_back_outlives_a_disk_that_is_full_for_a_moment(path):
    history = History(path)
    first, *others = cycles_of(5)
    history.record(first)
    with sqlite3.connect(path) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON cycles BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    for cycle in others[:3]:
        history.record(cycle)
    for cycle in (others[3], replace(others[3], time=1.25)):
        with pytest.raises(sqlite3.IntegrityError, match="full"):
            history.record(cycle)
    with sqlite3.connect(path) as other:
        other.execute("DROP TRIGGER full")
    other.close()
    history.record(replace(others[3], time=1.5))
    history.close()
    recorded = HistoryReader(path)
    assert [(row["td"], row["input"]) for row in recorded.cycles()] == [(0.25, 3), (1.5, 18)]
    assert len(recorded.samples()) == 7 * 3


def test_what_is_new_is_recorded_at_once(path):
    history = History(path)
    first, again, other = cycles_of(3)
    more = replace(other, changes=(Change("clean", 1, 4),))
    paused = replace(other, changes=(), outcome=Outcome.UNCHANGED, note="paused")
    failed = Cycle(1.0, Outcome.FAILED, "lost", stats=other.stats)
    for cycle in (first, again, more, paused, failed, failed):
        history.record(cycle)
    history.close()
    rows = [(row["outcome"], len(row["changes"])) for row in HistoryReader(path).cycles()]
    assert rows == [
        ("changed", 1),
        ("changed", 0),
        ("changed", 1),
        ("unchanged", 0),
        ("failed", 0),
        ("failed", 0),
    ]


def test_a_history_of_an_earlier_version_is_gone_on_with(path):
    record(path, steady(10))
    with sqlite3.connect(path) as other:
        other.execute("DROP INDEX cycles_at")
        other.execute("ALTER TABLE cycles DROP COLUMN at")
    other.close()
    assert [cycle["input"] for cycle in record(path, steady(20)).cycles()] == [10, 20]


def test_the_newest_can_be_asked_for(path):
    history = record(path, steady(10, 20, 30))
    assert [cycle["input"] for cycle in history.cycles(last=2)] == [20, 30]


def test_a_history_goes_on_where_it_stopped_and_others_can_read_it(path):
    record(path, steady(10))
    record(path, steady(20))
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT input FROM cycles ORDER BY cycle").fetchall() == [(10,), (20,)]
    other.close()


def test_what_is_no_history_is_refused(path, tmp_path):
    path.write_text("hello " * 100)
    with pytest.raises(InvalidInputError, match=r"run\.db: cannot be a history"):
        History(path)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    for opened in (History, HistoryReader):
        with pytest.raises(InvalidInputError, match="of another program"):
            opened(foreign)
    with pytest.raises(InvalidInputError, match="keep=0"):
        History(path, keep=0)
