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
from collections.abc import Callable, Sequence, Set
from typing import Any

from elastream.engines.executors.base import Cluster, Executor
from elastream.errors import ElastreamError, InvalidInputError, described

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
"""From one look to the next while executors come or go, ..."""
SETTLED_LOOK_SECONDS = 1.0
"""... and while as many are there as are wanted: with many executors, a look has its price."""
ASK_AGAIN_SECONDS = 10.0
"""When executors do not come, the request is repeated: a manager that restarted has lost it."""
FIRST_LEAD_SECONDS = 10.0
"""The assumed lead time of an executor until one has come, ..."""
FIRST_LEADS = 2.0, 3.5
"""... and what it takes at least and usually if it comes soon, as on a standalone cluster."""
REMEMBERED_LEADS = 8
"""Of this many requests; how many executors each was for does not matter."""
USUAL_LEAD = 0.75
"""The quantile of remembered lead times that plans are made for; one outlier does not count."""
PATIENCE_SECONDS = 60.0
"""How long executors may be too many or too few before that is a problem.

No lead time counts as longer: one that comes later has waited for room in the cluster.
"""


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
        greet: Called after a look that found executors without a task so far, if anybody wants any.
    """

    def __init__(
        self,
        cluster: Cluster,
        least: int,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        greet: Callable[[], object] = lambda: None,
    ) -> None:
        check_limits((least, most))
        self.least, self.most = least, most
        self.problem = ""
        """What the cluster refused, or why executors stay or do not come, in words; else empty."""
        self.settled = True
        """Whether as many are there as wanted, as last seen; reading it waits for nobody."""
        self.at_start = 0
        """How many there were before any were asked for."""
        self._cluster = cluster
        self._clock = clock
        self._greet = greet
        self._wants: dict[str, int | None] = {}
        self._held: dict[str, int] = {}
        """How many those count with who have not said yet: what is there stays, for them."""
        self._resting: set[str] = set()
        """Those of them that do nothing now; what they want does not count."""
        self._restoring = False
        """Whether the only one that wants any wants as many as at the start."""
        self._asked: int | None = None
        self._asked_at = -math.inf
        self._more_from: dict[str, float] = {}
        """From when on more may be requested for each of those that have said, ..."""
        self._counted_then: dict[str, int] = {}
        """... and how many they counted with at the last request."""
        self._awaited: deque[float] = deque()
        """When each executor was requested that is still to come, the oldest request first."""
        self._too_many_since: float | None = None
        self._too_few_since: float | None = None
        """Since when too few are there and none has come."""
        self._too_few_at = ""
        """The time of day at which that began."""
        self._known: frozenset[str] = frozenset()
        self._leaving: set[str] = set()
        self._present: tuple[Executor, ...] = ()
        self._leads: dict[float, float] = {}
        """By when they were requested: how long executors took."""
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
        """How many are wanted in total; None while nobody who is at work has said."""
        with self._lock:
            at_work = self._at_work()
            if all(self._wants[who] is None for who in at_work):
                return None
            total = sum(map(self._counted, at_work))
            # There may have been fewer or more than the bounds allow.
            return total if self._restoring else self.bounded(total)

    def bounded(self, count: int) -> int:
        """The nearest number that may be asked for."""
        return min(max(count, self.least), self.most)

    @property
    def lead_time(self) -> float:
        """How long executors usually take to come, in seconds."""
        return self.leads[1] if self._leads else FIRST_LEAD_SECONDS

    @property
    def leads(self) -> tuple[float, float]:
        """How long executors take to come at least and usually, in seconds.

        Until one has come, those of executors that come soon: for others, it does not matter at
        which moment they are asked for.
        """
        leads = sorted(self._leads.values())
        return (leads[0], leads[int(USUAL_LEAD * (len(leads) - 1))]) if leads else FIRST_LEADS

    def join(self, who: str) -> None:
        """`who` uses the executors as well, and has not said yet how many it wants.

        As long as nobody has, what is there stays, and what is on its way comes. Then, it counts
        with its part of what was there until it has said.
        """
        with self._lock:
            if who not in self._wants:
                self._wants[who] = None
                self._share_out()

    def want(self, who: str, count: int, wait: float = 0.0) -> None:
        """`who` wants this many from now on; more than now are requested in `wait` seconds."""
        with self._lock:
            if self.target is None:
                self._share_out()
            if who not in self._more_from:
                self._counted_then[who] = self._counted(who)
            self._wants[who] = count
            self._more_from[who] = self._clock() + wait
            self._held.pop(who, None)
            self.settled = False
        self.wake()

    def note(self, who: str, running: bool) -> None:
        """Whether `who` is at work: what it wants counts only then.

        While nobody is, everything stays as it is.
        """
        with self._lock:
            if running == (who not in self._resting):
                return
            self._resting ^= {who}
            self.settled = False
        self.wake()

    def wanted(self, who: str) -> int | None:
        """How many `who` wants; None if it has not said."""
        with self._lock:
            return self._wants.get(who)

    def forget(self, who: str) -> bool:
        """`who` wants nothing any more; returns whether somebody else still does.

        After the last one, those that are there stay, and those that are on their way are called
        off: nobody would release them.
        """
        with self._lock:
            last = self._wants.keys() == {who}
            for kept in (self._wants, self._held, self._more_from, self._counted_then):
                kept.pop(who, None)
            self._resting.discard(who)
            if last and not self._restoring:
                self._stay()
            self._restoring = self._restoring and not last
            return bool(self._wants)

    def restore(self, who: str) -> bool:
        """Return to the number at the start, until `who` is forgotten.

        Returns False, and does nothing, if others want executors, or if none were ever asked for.
        """
        with self._lock:
            if self._wants.keys() != {who} or self._asked is None:
                return False
            # A query that was attached before its first executor came would be left with none.
            self._wants[who] = max(self.at_start, 1)
            self._held.clear()
            self._resting.discard(who)
            self._restoring = True
            self.settled = False
        self.wake()
        return True

    def share(self, who: str) -> int:
        """How many of the executors count as those of `who`, in proportion to what all want."""
        with self._lock:
            counts = {one: self._counted(one) for one in self._at_work() | {who}}
            present, total = len(self._present), sum(counts.values())
            if who not in self._wants or not total:
                return present
            return max(round(present * counts[who] / total), 1)

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
            before = self._present
            self._look()
            target = self.target
            self._note_missing(target, before)
            if target is not None:
                self._ask(target)
                self._release(target)
            self.settled = target in (None, len(self._present))
            new = any(executor.new for executor in self._present)
        if new and target is not None:
            self._greet()

    def _look(self) -> None:
        listed, now = self._cluster.list(), self._clock()
        names = frozenset(executor.name for executor in listed)
        work = frozenset(executor.name for executor in listed if executor.works)
        for _ in work - self._known:
            if self._awaited:
                self._note_lead(self._awaited.popleft(), now)
        self._known |= work
        # Spark lists one that was released for some seconds more.
        self._leaving &= names
        self._present = tuple(each for each in listed if each.name not in self._leaving)
        if self._asked is None:
            self.at_start = max(self.at_start, len(self._present))
        elif len([each for each in self._present if each.works]) >= self._asked:
            # One that comes from now on replaces another, and its lead time is unknown.
            self._awaited.clear()

    def _note_lead(self, requested: float, now: float) -> None:
        """The lead time of a request is that of the last one that did not have to wait for room."""
        lead = now - requested
        if lead <= PATIENCE_SECONDS or requested not in self._leads:
            self._leads[requested] = min(lead, PATIENCE_SECONDS)
        while len(self._leads) > REMEMBERED_LEADS:
            del self._leads[min(self._leads)]

    def _note_missing(self, target: int | None, before: Sequence[Executor]) -> None:
        came = {each.name for each in self._present} - {each.name for each in before}
        if target is None or len(self._present) >= target:
            self._too_few_since = None
        elif self._too_few_since is None or came:
            self._too_few_since, self._too_few_at = self._clock(), time.strftime("%H:%M:%S")

    def _ask(self, target: int) -> None:
        now, present = self._clock(), len(self._present)
        overdue = present < target and now - self._asked_at >= ASK_AGAIN_SECONDS
        if target == self._asked and not overdue:
            return
        more = target - max(self._asked or 0, present)
        if more > 0 and now < self._more_may_be_asked():
            return
        self._cluster.ask(target)
        self._counted_then = {who: self._counted(who) for who in self._at_work()}
        self._awaited.extend([now] * more)
        missing = target - sum(each.works for each in self._present)
        while len(self._awaited) > max(missing, 0):
            self._awaited.pop()
        self._asked, self._asked_at = target, now

    def _more_may_be_asked(self) -> float:
        """When the first of those that want more than at the last request wants it."""
        return min(
            (
                self._more_from[who]
                for who in self._at_work() & self._more_from.keys()
                if self._counted(who) > self._counted_then.get(who, 0)
            ),
            default=-math.inf,
        )

    def _stay(self) -> None:
        """Ask for those that are there."""
        if self._asked is None:
            return
        try:
            self._look()
            there = max(len(self._present), self.least)  # One that has just died is replaced.
            self._cluster.ask(there)
        except Exception as error:  # The session may have ended, and its executors with it.
            if self._awaited:
                log.info("executors on their way cannot be called off: %s", described(error))
            return
        self._asked, self._asked_at = there, self._clock()
        self._awaited.clear()

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

    def _missing(self) -> str:
        """That executors do not come, if that has lasted."""
        since, target = self._too_few_since, self.target
        if since is None or target is None or self._clock() - since < PATIENCE_SECONDS:
            return ""
        return (
            f"{target - len(self._present)} of {target} executors are missing, and none has come "
            f"since {self._too_few_at}: the cluster may be full, or not allow this application more"
        )

    def _at_work(self) -> Set[str]:
        return self._wants.keys() - self._resting

    def _counted(self, who: str) -> int:
        wanted = self._wants.get(who)
        return self._held.get(who, 0) if wanted is None else wanted

    def _share_out(self) -> None:
        """Divide what is there, and nobody has asked for, among those who have not said yet.

        Together, they keep what they have when another one joins them.
        """
        at_work = [who for who in self._wants if who not in self._resting]
        said = [count for who in at_work if (count := self._wants[who]) is not None]
        undecided = [who for who in at_work if self._wants[who] is None]
        rest = len(self._present) - sum(said)
        if said:
            rest = max(rest, sum(self._held.get(who, 0) for who in undecided))
        for place, who in enumerate(undecided):
            self._held[who] = max((rest + place) // len(undecided), self.least)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._woken.wait(SETTLED_LOOK_SECONDS if self.settled else LOOK_SECONDS)
            self._woken.clear()
            try:
                self.step()
                self._tell(self._kept() or self._missing())
            except ElastreamError as error:
                self._tell(str(error))
            except Exception as error:  # A cluster manager that restarts, a session that ends.
                self._tell(f"executors cannot be scaled now: {type(error).__name__}: {error}")

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem
