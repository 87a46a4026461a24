"""The watchdog: says how long a function has been running, and ends a process that hangs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from elastream.engines.spark.backends.base import BackendUnavailableError, Connection, MemberName

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
TIMED_OUT = 75
"""The exit code of a process that was ended: Spark starts another one in its place."""


class Watchdog:
    """Watches one replica's function from a thread of its own.

    A loop that is inside a function cannot say that it is well. When the function takes longer than
    a second, the watchdog does so, on a connection of its own; when it takes longer than the
    operator's time-out, it ends the process, and what that worked on is done again.

    Args:
        name: The replica.
        connect: Opens the connection, the first time that it is needed.
        timeout: How long the function may run, in seconds; for ever unless given.
        end: Ends the process.
    """

    def __init__(
        self,
        name: MemberName,
        connect: Callable[[], Connection],
        timeout: float | None,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._name = name
        self._connect = connect
        self._timeout = timeout
        self._end = end
        self._since: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def function_begins(self) -> None:
        """From now on the function runs."""
        self._since = monotonic()

    def function_ends(self) -> None:
        """It runs no more."""
        self._since = None

    def _watch(self) -> None:
        connection: Connection | None = None
        look = min(LOOK_SECONDS, (self._timeout or LOOK_SECONDS) / 4)
        while not self._stop.wait(look):
            since = self._since
            if since is None:
                continue
            busy_for = monotonic() - since
            if self._timeout is not None and busy_for > self._timeout:
                log.error("%s %d: its function has not ended in %g s", *self._name, self._timeout)
                self._end(TIMED_OUT)
            if busy_for > LOOK_SECONDS:
                with suppress(BackendUnavailableError):
                    connection = connection or self._connect()
                    connection.board.beat(self._name, busy_for)
        if connection:
            connection.close()
