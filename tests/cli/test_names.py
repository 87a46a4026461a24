"""The same names on the command line as in the call."""

from inspect import signature

import pytest

import elastream
from elastream.cli.commands.learn import learn
from elastream.cli.commands.run import run
from elastream.cli.commands.simulate import simulate

OF_A_PROGRAM = {"sources", "outputs", "session", "say", "say_last", "behaviour", "after_each"}
"""What needs an object. A module that is named as FILE.py:NAME brings its sources and outputs."""
ONE_BY_ONE = {"settings"}
"""Options of their own, such as --time-out."""


@pytest.mark.parametrize(
    ("call", "command"), [(elastream.run, run), (elastream.simulate, simulate)]
)
def test_arguments_of_the_call_are_options_of_the_command(call, command):
    arguments = set(signature(call).parameters) - OF_A_PROGRAM - ONE_BY_ONE
    assert arguments <= set(signature(command).parameters)


def test_what_a_table_is_learned_for_is_said_as_for_its_run():
    own = {"out", "episodes", "seed"}
    assert set(signature(learn).parameters) - own <= set(signature(run).parameters)


@pytest.mark.parametrize("option", ["service_ms", "pool", "speed", "scale", "initial", "guards"])
def test_an_option_means_the_same_everywhere(option):
    commands = [each for each in (run, simulate, learn) if option in signature(each).parameters]
    assert len({str(signature(each).parameters[option].default) for each in commands}) == 1
