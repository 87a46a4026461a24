"""The end of every sampling window: lanes are reviewed, and watchers told what was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from elastream.core.health import Health, State
from elastream.engines.base import Watcher, report_to
from elastream.engines.spark.backends.board import Board
from elastream.engines.spark.backends.ledger import Totals
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.driver.condition import absences, stalls, unread
from elastream.engines.spark.driver.statistics import Intervals, Samples


class Windows:
    """Looks after a run once in every window.

    Args:
        intervals: From window to window.
        board: A connection's own.
        outputs: The operators whose output is kept for readers.
        queue_size: How much of it is kept.
        review: Looks again how replicas and lanes should be placed.
    """

    def __init__(
        self,
        intervals: Intervals,
        board: Board,
        outputs: Iterable[str],
        queue_size: int,
        review: Callable[[], None],
    ) -> None:
        self._intervals = intervals
        self._board = board
        self._outputs = outputs
        self._queue_size = queue_size
        self._review = review
        self._failures: Mapping[MemberName, str] = {}
        self._stops: list[Health] = []
        """What keeps replicas from working. Both as of the last window."""
        self._watchers: list[Watcher] = []

    def watch(self, watcher: Watcher) -> None:
        """From now on, tell the watcher what members counted in every window."""
        self._watchers.append(watcher)

    def health(self) -> list[Health]:
        """What was wrong in the last window."""
        failed = [
            Health(State.DEGRADED, f"{name!r} cannot continue: {error}")
            for (name, _), error in self._failures.items()
        ]
        return failed + self._stops

    def ended(self, duration: float, totals: Totals, samples: Samples) -> None:
        """Look after everything that a window has shown.

        If any of that fails, the next window tells what this one could not.
        """
        self._intervals.add(duration, samples)
        members = self._board.members()
        stats = self._intervals.counted(totals, members)
        full = unread(self._outputs, self._queue_size, self._intervals.totals, totals)
        self._stops = stalls(stats) + absences(stats) + full
        self._board.probe()
        self._failures = self._board.failures()
        self._review()
        # Last: nobody would be told of incidents that were noted before something failed.
        report_to(self._watchers, self._intervals.told(stats, totals, members))
