"""Ctrl-C that first asks the program to end, and only then ends it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType


@contextmanager
def first_interrupt(then: Callable[[], object] = lambda: None) -> Iterator[Event]:
    """Set by the first Ctrl-C; the second one ends the program as usual.

    Args:
        then: Called by the first one, too: it must be quick, and take no lock.
    """
    interrupted = Event()

    def remember(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)
        then()

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
