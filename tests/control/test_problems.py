"""Events that are set aside are counted, and said once."""

import logging
from dataclasses import replace

from elastream.control import ControlLoop
from elastream.control.problems import MOST_ERRORS, OTHERS, Failure, Problems
from elastream.policies.pa_sps import PaSps
from elastream.predictors import PREDICTORS
from support.engines import PlaybackEngine
from support.pipelines import failing, interval, line

LINE = line("clean", "store")


def test_errors_that_differ_in_numbers_are_one():
    problems = Problems()
    new = problems.take(failing(LINE, "clean", {"KeyError: order 17": 3, "KeyError: order 4": 2}))
    assert new == [Failure("clean", "KeyError: order #")]
    assert problems.take(failing(LINE, "clean", {"KeyError: order 99": 1})) == []
    assert problems.failures == {Failure("clean", "KeyError: order #"): 6}
    assert problems.operators["clean"].set_aside == 6


def test_an_engine_need_not_know_the_error():
    problems = Problems()
    stats = failing(LINE, "store", {"KeyError: 'id'": 3})
    aside = replace(stats.operators["store"], set_aside=5.0)
    problems.take(replace(stats, operators={**stats.operators, "store": aside}))
    assert problems.failures == {
        Failure("store", "KeyError: 'id'"): 3,
        Failure("store", "unknown error"): 2,
    }


def test_errors_that_are_all_different_do_not_fill_the_memory():
    problems = Problems()
    for letter in range(200):
        problems.take(failing(LINE, "clean", {f"no such thing: {chr(1000 + letter)}": 1}))
    assert len(problems.failures) <= MOST_ERRORS + 1
    assert problems.failures[Failure("clean", OTHERS)] == 200 - MOST_ERRORS
    assert sum(problems.failures.values()) == 200


def test_a_run_logs_every_error_once_and_is_degraded_while_most_events_fail(caplog):
    caplog.set_level(logging.WARNING, "elastream.control.loop")
    script = [
        failing(LINE, "clean", {"TypeError: a dict": 100}),
        failing(LINE, "clean", {"TypeError: a dict": 100, "KeyError: 5": 1}),
        interval(LINE, 100),
    ]
    engine = PlaybackEngine(LINE, script)
    loop = ControlLoop(engine, PaSps(), PREDICTORS["basic"]())
    loop.cycle()
    assert str(loop.health()) == "degraded: 'clean' sets most events aside: TypeError: a dict"
    loop.cycle()
    loop.cycle()
    assert str(loop.health()) == "running"
    told = [record.message for record in caplog.records if record.name == "elastream.control.loop"]
    assert told == [
        "'clean' sets events aside: TypeError: a dict",
        "'clean' sets events aside: KeyError: #",
    ]
    assert str(loop.problems) == "set aside: 201 events, most by 'clean': TypeError: a dict"
