"""Whose the state is: the pipeline that it belongs to, and the driver that acts on it."""

from __future__ import annotations

from elastream.engines.spark.backends.kafka.commands.base import Command, command
from elastream.engines.spark.backends.kafka.state import Driver, State


@command
def claim(state: State, command: Command) -> str:
    """Give the state to a pipeline, unless it has one; the result is which."""
    if state.pipeline is None:
        state.pipeline = command["pipeline"]
    return state.pipeline


@command
def own(state: State, command: Command) -> tuple[str, str, int] | None:
    """Be the driver, if nobody is, or instead of one that gave no sign of life; else who is."""
    driver, instead_of = state.driver, command["instead_of"]
    if driver is None or [driver.process, driver.beat] == instead_of:
        state.driver = Driver(command["process"], command["who"])
        return None
    return driver.process, driver.who, driver.beat


@command
def renew(state: State, command: Command) -> bool:
    """Give a sign of life; False if another is the driver now."""
    if state.driver is None or state.driver.process != command["process"]:
        return False
    state.driver.beat += 1
    return True


@command
def disown(state: State, command: Command) -> None:
    """Be the driver no longer."""
    if state.driver is not None and state.driver.process == command["process"]:
        state.driver = None
