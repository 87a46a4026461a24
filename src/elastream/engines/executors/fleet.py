"""A fleet: as many executors as its users want together, within bounds.

Several queries of a session share its executors: each says how many it wants, and the fleet has as
many as all of them together. Absolute totals come first; then those that are too many are released,
the least busy first. What cannot go yet is tried again until it can.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from elastream.engines.executors.base import Cluster, Executor
from elastream.errors import ElastreamError, InvalidInputError

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
"""From one look to the next while executors come or go, ..."""
SETTLED_LOOK_SECONDS = 1.0
"""... and while as many are there as are wanted: with many executors, a look has its price."""
ASK_AGAIN_SECONDS = 10.0
"""When executors do not come, the request is repeated: a manager that restarted has lost it."""
FIRST_LEAD_SECONDS = 10.0
"""The assumed lead time of an executor until one has come."""
REMEMBERED_LEADS = 8
USUAL_LEAD = 0.75
"""The quantile of remembered lead times that plans are made for; one outlier does not count."""
PATIENCE_SECONDS = 60.0
"""How long executors may be too many before that is a problem."""


def check_limits(executors: Any) -> None:
    """An error unless this is how few and how many executors there may be.

    >>> check_limits((1, 8))
    >>> check_limits(8)
    Traceback (most recent call last):
    elastream.errors.InvalidInputError: executors=8: give the fewest and the most, such as (1, 8), \
the fewest at least 1
    """
    counts = executors if isinstance(executors, tuple | list) else ()
    whole = all(isinstance(count, int) and not isinstance(count, bool) for count in counts)
    if len(counts) != 2 or not whole or not 1 <= counts[0] <= counts[1]:
        raise InvalidInputError(
            f"executors={executors!r}: give the fewest and the most, such as (1, 8), the fewest at "
            "least 1"
        )


class Fleet:
    """Follows what its users want; `step` is one look, and `start` lets a thread look.

    Args:
        cluster: Where executors come from.
        least: Fewer are never asked for.
        most: More are never asked for.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        cluster: Cluster,
        least: int,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_limits((least, most))
        self.least, self.most = least, most
        self.problem = ""
        """What the cluster last refused, or why executors stay, in words; empty when it works."""
        self.settled = True
        """Whether as many are there as wanted, as last seen; reading it waits for nobody."""
        self.at_start = 0
        """How many there were before any were asked for."""
        self._cluster = cluster
        self._clock = clock
        self._wants: dict[str, int | None] = {}
        self._asked: int | None = None
        self._asked_at = -math.inf
        self._awaited: deque[float] = deque()
        """When each executor was requested that is still to come, the oldest request first."""
        self._too_many_since: float | None = None
        self._known: frozenset[str] = frozenset()
        self._leaving: set[str] = set()
        self._present: tuple[Executor, ...] = ()
        self._leads: deque[float] = deque(maxlen=REMEMBERED_LEADS)
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._look()

    @property
    def present(self) -> Sequence[Executor]:
        """The executors that take tasks, as last seen."""
        return self._present

    @property
    def target(self) -> int | None:
        """How many are wanted in total; None while nobody has said."""
        with self._lock:
            if all(count is None for count in self._wants.values()):
                return None
            return self.bounded(sum(map(self._counted, self._wants.values())))

    def bounded(self, count: int) -> int:
        """The nearest number that may be asked for."""
        return min(max(count, self.least), self.most)

    @property
    def lead_time(self) -> float:
        """How long executors usually take to come, in seconds."""
        leads = sorted(self._leads)
        return leads[math.ceil(USUAL_LEAD * len(leads)) - 1] if leads else FIRST_LEAD_SECONDS

    def join(self, who: str) -> None:
        """`who` uses the executors as well, and has not said yet how many it wants.

        As long as nobody has, what is there stays, and what is on its way comes.
        """
        with self._lock:
            self._wants.setdefault(who, None)

    def want(self, who: str, count: int) -> None:
        """`who` wants this many from now on."""
        with self._lock:
            self._wants[who] = count
            self.settled = False
        self.wake()

    def forget(self, who: str) -> bool:
        """`who` wants nothing any more; returns whether somebody else still does."""
        with self._lock:
            self._wants.pop(who, None)
            return bool(self._wants)

    def share(self, who: str) -> int:
        """How many of the executors count as those of `who`, in proportion to what all want."""
        with self._lock:
            wants = dict(self._wants)
        present = len(self._present)
        alone = who not in wants or len(wants) == 1
        if alone or all(count is None for count in wants.values()):
            return present
        total = sum(map(self._counted, wants.values()))
        return max(round(present * self._counted(wants[who]) / total), 1) if total else present

    def start(self) -> None:
        """Keep looking, in a thread."""
        self._thread = threading.Thread(target=self._run, name="executors", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once: something has changed, such as a batch that has ended."""
        self._woken.set()

    def settle(self, seconds: float) -> bool:
        """Wait until as many are there as wanted; returns whether that was in time."""
        deadline = time.monotonic() + seconds
        while len(self._present) != self.target:
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def close(self) -> None:
        """Stop looking; the executors stay as they are."""
        self._stop.set()
        self.wake()
        if self._thread:
            self._thread.join()

    def step(self) -> None:
        """One look: note who came and went, ask for the total, release the surplus."""
        with self._lock:
            self._look()
            target = self.target
            if target is not None:
                self._ask(target)
                self._release(target)
            self.settled = target in (None, len(self._present))

    def _look(self) -> None:
        listed, now = self._cluster.list(), self._clock()
        names = frozenset(executor.name for executor in listed)
        work = frozenset(executor.name for executor in listed if executor.works)
        for _ in work - self._known:
            if self._awaited:
                self._leads.append(now - self._awaited.popleft())
        self._known |= work
        # Spark lists one that was released for some seconds more.
        self._leaving &= names
        self._present = tuple(each for each in listed if each.name not in self._leaving)
        if self._asked is None:
            self.at_start = max(self.at_start, len(self._present))
        elif len([each for each in self._present if each.works]) >= self._asked:
            # One that comes from now on replaces another, and its lead time is unknown.
            self._awaited.clear()

    def _ask(self, target: int) -> None:
        now, present = self._clock(), len(self._present)
        overdue = present < target and now - self._asked_at >= ASK_AGAIN_SECONDS
        if target == self._asked and not overdue:
            return
        self._cluster.ask(target)
        more = target - max(self._asked or 0, present)
        self._awaited.extend([now] * more)
        missing = target - sum(each.works for each in self._present)
        while len(self._awaited) > max(missing, 0):
            self._awaited.pop()
        self._asked, self._asked_at = target, now

    def _release(self, target: int) -> None:
        surplus = len(self._present) - target
        if surplus <= 0:
            if self._too_many_since is not None:
                self._cluster.release(())
            self._too_many_since = None
            return
        if self._too_many_since is None:
            self._too_many_since = self._clock()
        by_regret = sorted(self._present, key=lambda executor: executor.regret)
        first = [executor.name for executor in by_regret[:surplus]]
        gone = set(self._cluster.release(first))
        if gone:
            self._leaving |= gone
            self._too_many_since = None
            self._look()

    def _kept(self) -> str:
        """Why executors that are too many are still there, if that has lasted."""
        since, target = self._too_many_since, self.target
        if since is None or target is None or self._clock() - since < PATIENCE_SECONDS:
            return ""
        return (
            f"{len(self._present) - target} executors that are no longer needed cannot go yet: "
            "they run tasks, or hold shuffle files that a batch may still read; with "
            "spark.shuffle.service.enabled, a service would keep those"
        )

    def _counted(self, wanted: int | None) -> int:
        """Somebody who has not said yet is given the least."""
        return self.least if wanted is None else wanted

    def _run(self) -> None:
        while not self._stop.is_set():
            self._woken.wait(SETTLED_LOOK_SECONDS if self.settled else LOOK_SECONDS)
            self._woken.clear()
            try:
                self.step()
                self._tell(self._kept())
            except ElastreamError as error:
                self._tell(str(error))
            except Exception as error:  # A cluster manager that restarts, a session that ends.
                self._tell(f"executors cannot be scaled now: {type(error).__name__}: {error}")

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem
