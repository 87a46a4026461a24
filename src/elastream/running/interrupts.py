"""Ctrl-C while pipelines run: the first one drains them, the second one stops them at once.

PySpark's own handler cancels every job of the session, including those of the queries that read a
pipeline's output. While a run is active, this handler replaces it.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Let Ctrl-C end the block with nothing but a KeyboardInterrupt.

    Py4J logs the call that Ctrl-C has ended, and the one that PySpark's handler makes meanwhile.
    """
    root = logging.getLogger()
    root.addFilter(_tells_more)
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None
    finally:
        root.removeFilter(_tells_more)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Take SIGTERM, by which service managers end processes, as Ctrl-C; in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tells_more(record: logging.LogRecord) -> bool:
    """Whether a record is about anything other than a call of Py4J during Ctrl-C."""
    error = record.exc_info[1] if record.exc_info else None
    reentrant = error is not None and "reentrant call" in str(error.__context__)
    return not (isinstance(error, KeyboardInterrupt) or reentrant)


class Interruptible(Protocol):
    """A run, as far as Ctrl-C is concerned."""

    @property
    def is_active(self) -> bool:
        """Whether it still runs."""

    def interrupt(self, at_once: bool = False) -> None:
        """Drain and stop, or stop at once. It must be quick, and take no lock."""


class Interrupts:
    """Handles Ctrl-C for all runs of this process.

    Only the main thread can change handlers, so runs that other threads start are not covered. When
    the last run has ended, the handler passes signals on to the previous one.
    """

    def __init__(self) -> None:
        self._runs: list[Interruptible] = []
        self._before: Any = signal.default_int_handler
        self._pressed = 0
        self._waiting = 0
        """How many calls of the main thread wait for a run to end."""
        self._tell_program = False
        """Whether to pass Ctrl-C on to the program, now that its runs have ended."""

    def watch(self, run: Interruptible) -> None:
        """Handle Ctrl-C for this run until it ends."""
        if threading.current_thread() is threading.main_thread():
            self._runs = [*self._active, run]
            self._install()

    def ended(self) -> None:
        """A run has ended; any thread may call this.

        A program that does not wait for a run has not noticed the Ctrl-C yet, so it is told now.
        """
        if self._active or not self._pressed:
            return
        if self._waiting:
            self._pressed = 0
        else:
            self._tell_program = True
            main = threading.main_thread().ident
            if main is not None and threading.main_thread().is_alive():
                signal.pthread_kill(main, signal.SIGINT)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The main thread waits for a run: Ctrl-C is for that run alone."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # A notebook sets its own handler for every cell.
        replaced = self._install() if self._active else None
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._active:
                self._pressed = 0
            if replaced is not None:
                signal.signal(signal.SIGINT, replaced)

    @property
    def _active(self) -> list[Interruptible]:
        return [run for run in self._runs if run.is_active]

    def _install(self) -> Any:
        """Set our handler; returns the one that it replaces, if it is not ours already."""
        found = signal.getsignal(signal.SIGINT)
        # Every access creates a new bound method.
        if found == self._handle:
            return None
        self._before = found
        signal.signal(signal.SIGINT, self._handle)
        return found

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._tell_program:
            self._tell_program, self._pressed = False, 0
            raise KeyboardInterrupt
        active = self._active
        if not active:
            self._hand_on(number, frame)
            return
        self._pressed += 1
        if self._pressed > 2:
            raise KeyboardInterrupt
        for run in active:
            run.interrupt(at_once=self._pressed > 1)

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        if callable(self._before):
            self._before(number, frame)
        elif self._before != signal.SIG_IGN:
            raise KeyboardInterrupt


INTERRUPTS = Interrupts()
