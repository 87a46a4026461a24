"""Ctrl-C while a run starts: a plain KeyboardInterrupt, and nothing is left."""

import logging
import os
import signal
import subprocess
import sys

import pytest

from elastream.engines.spark.driver.launch import interrupts_held
from elastream.running.interrupts import ended_by_sigterm, plain_interrupts
from support.processes import descendants
from support.waiting import eventually

PATIENCE = 120.0
PROGRAM = """
import elastream

pipeline = elastream.Pipeline("orders")
pipeline.add(print, name="price", after=pipeline.source("orders"), pool=2)
elastream.run(pipeline, {"orders": [[{"pieces": 3}]]})
"""


def test_a_held_interrupt_comes_at_the_end_of_the_block():
    before, done = signal.getsignal(signal.SIGINT), []

    @interrupts_held()
    def work():
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_is_taken_as_ctrl_c_and_only_in_the_block():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), ended_by_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def error(kind, during=None):
    """An error that was raised while another one was handled."""
    made = kind()
    made.__context__ = during
    return made


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        (error(KeyboardInterrupt), False),
        (error(OSError, RuntimeError("reentrant call inside <_io.BufferedReader name=4>")), False),
        (error(OSError, RuntimeError("another")), True),
        (error(ValueError), True),
    ],
)
def test_only_what_py4j_says_about_an_interrupted_call_is_not_shown(raised, shown, caplog):
    with plain_interrupts():
        logging.error("while sending a command", exc_info=raised)
    assert bool(caplog.records) is shown
    caplog.clear()
    logging.error("afterwards", exc_info=raised)
    assert caplog.records


def test_an_interrupt_hides_what_it_has_interrupted():
    @plain_interrupts()
    def work():
        raise error(KeyboardInterrupt, OSError("of Py4J"))

    with pytest.raises(KeyboardInterrupt) as raised:
        work()
    assert raised.value.__suppress_context__


@pytest.mark.xdist_group("spark")
def test_no_java_is_left_when_it_is_interrupted_before_it_listens(tmp_path):
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        eventually(lambda: java_of(program), PATIENCE)
        (java,) = java_of(program)
        os.killpg(program.pid, signal.SIGINT)
        said = program.communicate(timeout=PATIENCE)[1]
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    assert program.returncode == -signal.SIGINT, said
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert "py4j" not in said
    eventually(lambda: not java.alive, PATIENCE)


def java_of(program):
    """Spark's process, once it is Java, and not what works out how to start it."""
    return [
        each
        for each in descendants(program.pid)
        if "/java\0" in each.command and "spark.launcher.Main" not in each.command
    ]
