"""How a run is, from what its engine reports and its loop sees."""

import logging

import pytest

from elastream.control import ControlLoop
from elastream.core.health import Health, State
from elastream.engines.base import ReportsHealth
from elastream.errors import EngineError
from elastream.policies.pa_sps import PaSps
from elastream.predictors import PREDICTORS
from support.engines import PlaybackEngine
from support.pipelines import interval, line

LINE = line("clean", "store")
FULL = Health(State.WAITING, "the disk is full")


class Reporting(PlaybackEngine):
    """A playback engine that says how it is."""

    reported = Health()

    def health(self):
        if isinstance(self.reported, Exception):
            raise self.reported
        return self.reported


class Moody(PaSps):
    """Fails as long as it is told to."""

    failing = True

    def decide(self, context):
        if self.failing:
            raise ZeroDivisionError("division by zero")
        return super().decide(context)


def loop_over(engine, policy=None, td=30.0):
    return ControlLoop(engine, policy or PaSps(), PREDICTORS["basic"](), td=td)


def steady(count, events=100, **more):
    return [interval(LINE, events, number=i, **more) for i in range(count)]


def stuck(count, td=30.0):
    return steady(count, events=0, td=td, queued={"clean": 500.0})


def test_a_run_starts_and_runs():
    loop = loop_over(PlaybackEngine(LINE, steady(1)))
    assert str(loop.health()) == "starting"
    loop.cycle()
    assert str(loop.health()) == "running"


def test_an_engine_need_not_report_anything():
    assert not isinstance(PlaybackEngine(LINE, []), ReportsHealth)
    assert isinstance(Reporting(LINE, []), ReportsHealth)


def test_what_the_engine_reports_is_heard_at_once():
    engine = Reporting(LINE, steady(2))
    loop = loop_over(engine)
    loop.cycle()
    engine.reported = FULL
    assert loop.health() == FULL
    engine.reported = OSError("no answer")
    assert str(loop.health()) == ("degraded: the engine cannot say how it is: OSError: no answer")


def test_an_engine_that_has_failed_ends_the_run_with_the_cause():
    engine = Reporting(LINE, steady(3))
    loop = loop_over(engine)
    cycles = loop.run()
    next(cycles)
    engine.reported = Health(State.FAILED, "it has failed 6 times within 600 s")
    with pytest.raises(EngineError, match="it has failed 6 times"):
        next(cycles)
    assert loop.health().state is State.FAILED


def test_an_engine_that_raises_has_failed():
    loop = loop_over(PlaybackEngine(LINE, [EngineError("the source 'in' failed")]))
    with pytest.raises(EngineError):
        list(loop.run())
    assert str(loop.health()) == "failed: the source 'in' failed"


def test_a_policy_that_fails_degrades_the_run_until_it_works_again():
    policy = Moody()
    loop = loop_over(PlaybackEngine(LINE, steady(3)), policy)
    loop.cycle()
    assert str(loop.health()) == (
        "degraded: no decision, failed cycles in a row: 1 (ZeroDivisionError: division by zero)"
    )
    loop.cycle()
    assert "failed cycles in a row: 2 (" in loop.health().why
    policy.failing = False
    loop.cycle()
    assert str(loop.health()) == "running"


def test_a_policy_that_fails_again_and_again_does_not_fill_the_log(caplog):
    loop = loop_over(PlaybackEngine(LINE, steady(5)), Moody())
    for _ in range(5):
        loop.cycle()
    assert len([record for record in caplog.records if record.exc_info]) == 1
    assert len(caplog.records) == 2


def test_statistics_that_no_longer_come_are_missed():
    engine = PlaybackEngine(LINE, steady(1))
    loop = loop_over(engine)
    loop.cycle()
    engine.clock.time = 30 + 90
    assert str(loop.health()) == "running"
    engine.clock.time = 30 + 91
    assert str(loop.health()) == "degraded: nothing has been measured for 91 s"


def test_an_operator_that_stands_still_is_named():
    loop = loop_over(PlaybackEngine(LINE, [*steady(1), *stuck(3), *steady(1)]))
    for _ in range(3):
        loop.cycle()
        assert str(loop.health()) == "running"
    loop.cycle()
    assert str(loop.health()) == (
        "degraded: 'clean' has processed nothing for 90 s while events wait for it"
    )
    loop.cycle()
    assert str(loop.health()) == "running"


def test_short_intervals_are_no_reason_to_lose_patience():
    loop = loop_over(PlaybackEngine(LINE, stuck(10, td=1.0)), td=1.0)
    for _ in range(9):
        loop.cycle()
    assert str(loop.health()) == "running"
    loop.cycle()
    assert loop.health().state is State.DEGRADED


def test_only_changes_are_logged(caplog):
    caplog.set_level(logging.INFO, "elastream.control.health")
    engine = Reporting(LINE, [*stuck(6), *steady(2)])
    loop = loop_over(engine)
    for _ in range(6):
        loop.cycle()
        loop.health()
    engine.reported = FULL
    loop.cycle()
    engine.reported = Health()
    loop.cycle()
    told = [(record.levelname, record.message) for record in caplog.records]
    assert told == [
        ("WARNING", "degraded: 'clean' has processed nothing for 90 s while events wait for it"),
        ("WARNING", "waiting: the disk is full"),
        ("INFO", "running again"),
    ]


def test_after_its_end_a_run_is_as_it_was():
    engine = Reporting(LINE, steady(2))
    loop = loop_over(engine)
    list(loop.run(2))
    engine.clock.time, engine.reported = 1e6, FULL
    assert str(loop.health()) == "running"
