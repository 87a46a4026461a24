"""Ctrl-C that first asks, and only then insists."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType


@contextmanager
def first_interrupt() -> Iterator[Event]:
    """Set by the first Ctrl-C; the second one ends the program as usual."""
    interrupted = Event()

    def remember(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
