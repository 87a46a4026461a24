"""A fleet: as many executors as its users want together, within bounds.

Several queries of a session share its executors: each says how many it wants, and the fleet has as
many as all of them together. Absolute totals come first; then those that are too many are released,
the least busy first. What cannot go yet is tried again until it can.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from elastream.engines.executors.base import Cluster, Executor
from elastream.errors import EngineError, InvalidInputError

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
FIRST_LEAD_SECONDS = 10.0
"""The assumed lead time of an executor until one has come."""
REMEMBERED_LEADS = 8


class Fleet:
    """Follows what its users want; `step` is one look, and `start` lets a thread look.

    Args:
        cluster: Where executors come from.
        least: Fewer are never asked for.
        most: More are never asked for.
        only_look: Whether to leave the executors alone.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        cluster: Cluster,
        least: int,
        most: int,
        only_look: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 1 <= least <= most:
            raise InvalidInputError(
                f"executors=({least}, {most}): give a minimum of 1 or more, and a maximum of at "
                "least that"
            )
        self.least, self.most = least, most
        self.problem = ""
        """What the cluster last refused, in words; empty when it works."""
        self._cluster = cluster
        self._only_look = only_look
        self._clock = clock
        self._wants: dict[str, int] = {}
        self._asked: int | None = None
        self._awaited_since: float | None = None
        self._known: frozenset[str] = frozenset()
        self._leaving: set[str] = set()
        self._present: tuple[Executor, ...] = ()
        self._leads: deque[float] = deque(maxlen=REMEMBERED_LEADS)
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._look()
        self.at_start = len(self._present)
        """How many there were when it began."""

    @property
    def present(self) -> Sequence[Executor]:
        """The executors that take tasks, as last seen."""
        return self._present

    @property
    def target(self) -> int | None:
        """How many are wanted in total; None while nobody has said."""
        with self._lock:
            if not self._wants:
                return None
            return self.bounded(sum(self._wants.values()))

    def bounded(self, count: int) -> int:
        """The nearest number that may be asked for."""
        return min(max(count, self.least), self.most)

    @property
    def lead_time(self) -> float:
        """The longest recent lead time of an executor, in seconds."""
        return max(self._leads, default=FIRST_LEAD_SECONDS)

    def want(self, who: str, count: int) -> None:
        """`who` wants this many from now on."""
        with self._lock:
            self._wants[who] = count

    def forget(self, who: str) -> bool:
        """`who` wants nothing any more; returns whether somebody else still does."""
        with self._lock:
            self._wants.pop(who, None)
            return bool(self._wants)

    def share(self, who: str) -> int:
        """How many of the executors count as those of `who`, in proportion to what all want."""
        with self._lock:
            wants: Mapping[str, int] = dict(self._wants)
        present = len(self._present)
        if set(wants) <= {who}:
            return present
        total = sum(wants.values())
        return max(round(present * wants.get(who, 0) / total), 1) if total else present

    def start(self) -> None:
        """Keep looking, in a thread."""
        self._thread = threading.Thread(target=self._run, name="executors", daemon=True)
        self._thread.start()

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
        if self._thread:
            self._thread.join()

    def step(self) -> None:
        """One look: note who came and went, ask for the total, release the surplus."""
        with self._lock:
            self._look()
            target = self.target
            if target is None or self._only_look:
                return
            if target != self._asked:
                if target > max(self._asked or 0, len(self._present)):
                    self._awaited_since = self._clock()
                self._cluster.ask(target)
                self._asked = target
            surplus = len(self._present) - target
            if surplus > 0:
                by_regret = sorted(self._present, key=lambda executor: executor.regret)
                first = [executor.name for executor in by_regret[:surplus]]
                self._leaving |= set(self._cluster.release(first))
                self._look()

    def _look(self) -> None:
        listed = self._cluster.list()
        names = frozenset(executor.name for executor in listed)
        if self._awaited_since is not None:
            self._leads.extend([self._clock() - self._awaited_since] * len(names - self._known))
        self._known |= names
        # Spark lists one that was released for some seconds more.
        self._leaving &= names
        self._present = tuple(each for each in listed if each.name not in self._leaving)
        if len(self._present) >= (self._asked or 0):
            # One that comes from now on replaces another, and its lead time is unknown.
            self._awaited_since = None

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self.step()
                self.problem = ""
            except EngineError as error:
                self._tell(str(error))
            except Exception as error:  # A cluster manager that restarts, a session that ends.
                self._tell(f"executors cannot be scaled now: {type(error).__name__}: {error}")

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem
