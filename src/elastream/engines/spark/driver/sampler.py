"""Sampling windows: a thread that looks at the counts once in each."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from elastream.core.health import RUNNING, Health, State
from elastream.engines.spark.backends.base import Connection
from elastream.engines.spark.backends.ledger import Totals
from elastream.engines.spark.driver.statistics import NOTHING, Samples
from elastream.errors import BackendUnavailableError, described

log = logging.getLogger(__name__)

HEAD_START = 0.03
"""How much earlier than an interval that began with it a window closes, in seconds: both would
compute at the same time, and the interval would miss the window."""

WindowEnded = Callable[[float, Totals, Samples], None]
"""Called at the end of every window: its length, all counts, and what arrived."""


class Sampler:
    """Counts how many events arrive at every source in each sampling window.

    Args:
        connection: A connection that nobody else uses.
        sources: Their names.
        seconds: The length of a window. A window that took longer, because the machine was busy,
            counts as the events that would have come in one of this length.
        listeners: Told at the end of every window, in this order.
    """

    def __init__(
        self,
        connection: Connection,
        sources: Sequence[str],
        seconds: float,
        listeners: Sequence[WindowEnded] = (),
    ) -> None:
        self._connection = connection
        self._sources = sources
        self._seconds = seconds
        self._samples: dict[str, deque[float]] = {name: deque() for name in sources}
        self._listeners = listeners
        self._health = RUNNING
        self._closed_at = monotonic()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def health(self) -> Health:
        """How the last window went."""
        return self._health

    def take(self) -> tuple[dict[str, tuple[float, ...]], float]:
        """The windows since the last call, oldest first, and how long ago the last one closed."""
        with self._lock:
            windows = {name: tuple(samples) for name, samples in self._samples.items()}
            for samples in self._samples.values():
                samples.clear()
            return windows, monotonic() - self._closed_at

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        began = monotonic()
        due = began - min(HEAD_START, self._seconds / 10)
        before: Mapping[str, int] | None = None
        while not self._stop.wait(max(due - monotonic(), 0.0)):
            try:
                ended, totals = monotonic(), self._connection.ledger.totals()
                last, before = before, self._arrived(totals)
                start, began = began, ended
                if last is not None:
                    window = self._window(last, before, start, ended)
                    for listener in self._listeners:
                        listener(ended - start, totals, window)
                self._health = RUNNING
            except BackendUnavailableError as error:
                self._health = Health(State.WAITING, f"waiting for the state: {error}")
            except Exception as error:
                # Whatever goes wrong in one window, the next one still counts.
                log.exception("a sampling window failed")
                self._health = Health(
                    State.DEGRADED, f"a sampling window failed: {described(error)}"
                )
            due = max(due + self._seconds, monotonic())

    def _window(
        self, before: Mapping[str, int], now: Mapping[str, int], began: float, ended: float
    ) -> Samples:
        scale = self._seconds / (ended - began)
        window = {name: ((now[name] - before[name]) * scale,) for name in self._sources}
        with self._lock:
            for name, (sample,) in window.items():
                self._samples[name].append(sample)
            self._closed_at = ended
        return window

    def _arrived(self, totals: Totals) -> dict[str, int]:
        counts = totals.counts
        return {name: counts.get((name, 0), NOTHING).processed for name in self._sources}
