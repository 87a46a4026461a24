"""The watchdog: reports how long a function has been running, and ends a hanging process."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic

from elastream.engines.spark.backends.base import Connection
from elastream.engines.spark.backends.members import MemberName
from elastream.errors import BackendUnavailableError

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
TIMED_OUT = 75
"""The exit code of a process that was ended: Spark starts another one in its place."""


class Watchdog:
    """Watches one replica's functions from a separate thread.

    A loop that is inside a function cannot say that it is well. When the function takes longer than
    a second, the watchdog does so, on a connection of its own, and says later that it has ended;
    when it takes longer than the operator's time-out, it ends the process, and what that worked on
    is done again.

    Args:
        name: The replica.
        connect: Opens the connection, the first time that it is needed.
        timeouts: How long each of its functions may run, in seconds; None for as long as it takes.
            It looks often enough for the shortest.
        end: Ends the process.
    """

    def __init__(
        self,
        name: MemberName,
        connect: Callable[[], Connection],
        timeouts: Iterable[float | None],
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._name = name
        self._connect = connect
        self._end = end
        given = [seconds for seconds in timeouts if seconds is not None]
        self._look = min([LOOK_SECONDS, *(seconds / 4 for seconds in given)])
        self._running: tuple[float, str, float | None] | None = None
        """Since when, whose function, and how long it may take."""
        self._connection: Connection | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def function_begins(self, operator: str, timeout: float | None) -> None:
        """The function of an operator starts now, and may take this many seconds."""
        self._running = monotonic(), operator, timeout

    def function_ends(self) -> float:
        """It has ended; returns how many seconds it took."""
        assert self._running is not None
        began, self._running = self._running[0], None
        return monotonic() - began

    def _watch(self) -> None:
        told = False
        while not self._stop.wait(self._look):
            now = monotonic()  # First: a function that ends meanwhile has not run for longer.
            since, operator, allowed = self._running or (now, "", None)
            busy_for = now - since
            if allowed is not None and busy_for > allowed:
                number = self._name[1]
                log.error(
                    "%s %d: its function has run for more than %g s", operator, number, allowed
                )
                self._end(TIMED_OUT)
            if busy_for > LOOK_SECONDS:
                self._report(busy_for)
                told = True
            elif told:
                self._report(0.0)
                told = False
        self._disconnect()

    def _report(self, busy_for: float) -> None:
        """Say that the replica is well; a watchdog that cannot must still watch."""
        try:
            self._connection = self._connection or self._connect()
            self._connection.board.beat(self._name, busy_for)
        except BackendUnavailableError:
            pass  # It can be written to later.
        except Exception:
            log.exception("%s %d cannot be reported as busy; connecting anew", *self._name)
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            with suppress(Exception):
                connection.close()
