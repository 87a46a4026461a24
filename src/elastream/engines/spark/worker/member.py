"""A member: the loop that trace players, relays and replicas share.

It knows nothing of Spark. Whatever runs it hands it a connection, and it works until somebody else
acts for it, or nobody should.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from time import monotonic
from typing import Any, TypeVar

from elastream.engines.spark.backends.base import Connection
from elastream.engines.spark.backends.board import NO_PLAN
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Parcel, Taken
from elastream.engines.spark.worker.back_pressure import BackPressure
from elastream.engines.spark.worker.routing import Router
from elastream.errors import BackendUnavailableError

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS = 0.5
"""How often a busy member looks for news of which nobody has told it."""
BEAT_SECONDS = 4.0
"""How often a busy member says that it is well, which is a transaction; see `SILENT_SECONDS`."""
UNAVAILABLE_SECONDS = 0.5
"""How long to wait when the backend can take nothing, for instance because the disk is full."""
STAND_BY_SECONDS = 0.5
START_LOOK_SECONDS = 0.05
RELEASE_SECONDS = 0.02
"""How often to ask for a lane that its former owner has not released."""
NO_LANE: frozenset[int] = frozenset()
HAND_OVER_SECONDS = 1.0
"""How long to wait for that; then the lane is taken, and the work of its owner is refused."""


class CannotGoOnError(Exception):
    """The user's code makes it pointless to continue.

    Args:
        reason: What it does.
        operator: Whose code it is, where a member runs that of several.
    """

    def __init__(self, reason: str, operator: str | None = None) -> None:
        super().__init__(reason)
        self.operator = operator


class Member(ABC):
    """Follows the plan, and does one step of its work after the other.

    Args:
        name: Whom it acts for.
        generation: Of which generation it is.
        connection: The backend.
        routers: Find the lanes of what it emits; a chain has one for every operator.
        pressure: Says whether there is room.
        hand_over: How long its function may keep a lane from its next owner, in seconds.
    """

    def __init__(
        self,
        name: MemberName,
        generation: int,
        connection: Connection,
        routers: Sequence[Router],
        pressure: BackPressure,
        hand_over: float = HAND_OVER_SECONDS,
    ) -> None:
        self.name = name
        self.generation = generation
        self.lanes, self.board, self.ledger = connection.lanes, connection.board, connection.ledger
        self.routers = routers
        self.pressure = pressure
        self.plan = NO_PLAN
        self.owned: frozenset[int] = frozenset()
        """The lanes that the plan gives us."""
        self.hand_over = hand_over
        self._looked = self._beaten = -LOOK_SECONDS - BEAT_SECONDS
        self._feedback_seen = 0
        self._asked_for_lanes = 0.0
        self._waits_since: dict[int, float] = {}
        """The lanes of ours that other members have not released, and since when we wait."""
        self.settled = False
        """Whether we held what the plan gives us when we last looked."""

    def run(self) -> None:
        """Get ready, then work until another takes this process's place, or it is dismissed."""
        try:
            with self.ready():
                if not self._wait_for_start():
                    return
                self._retried(self.lanes.join, self.name, self.generation)
                while monotonic() - self._looked < LOOK_SECONDS or self._retried(self._follow):
                    if self._step_and_wait():
                        self._looked = -LOOK_SECONDS
        except CannotGoOnError as error:
            self._stand_by((error.operator or self.name[0], self.name[1]), str(error))

    def _wait_for_start(self) -> bool:
        """Whether the generation was started; all of its members are ready by then."""
        self._retried(self.board.report_ready, self.generation, self.name)
        while not (begin := self._retried(self.board.may_begin, self.generation, self.name)):
            if begin is None:
                return False
            time.sleep(START_LOOK_SECONDS)
        return True

    @property
    def router(self) -> Router:
        """The first one, and often the only one."""
        return self.routers[0]

    def ready(self) -> AbstractContextManager[None]:
        """Set up, and tear down at the end."""
        return nullcontext()

    @abstractmethod
    def step(self) -> float:
        """Do a step of work, but not for long; returns how long to wait, unless there is more."""

    def settle(self) -> bool:
        """Hold the lanes that the plan gives us; whether all of them are ours.

        Compared again only when we look for news: a lane that is lost in between shows when its
        events are committed.
        """
        self.settled = self.settled or self.hold(self.owned)
        return self.settled

    def hold(self, wanted: frozenset[int]) -> bool:
        """Hold exactly these lanes; returns whether all of them are ours."""
        now, waits = monotonic(), self._waits_since
        if waits and now - self._asked_for_lanes < RELEASE_SECONDS:
            return False
        self._asked_for_lanes = now
        overdue = NO_LANE
        if waits:
            late = {lane for lane, since in waits.items() if now - since > self.hand_over}
            overdue = wanted & late
        held = self.lanes.hold(wanted, overdue)
        if held == wanted:
            self._waits_since = {}
            return True
        self._waits_since = {lane: waits.get(lane, now) for lane in wanted - held}
        return False

    def commit(
        self,
        done: Sequence[Taken],
        results: Sequence[Parcel],
        counts: Counts,
        dead: Sequence[DeadLetter] = (),
    ) -> bool:
        """Commit, however long it takes until the backend can write; False if we lost a lane."""
        committed = self._retried(self.lanes.commit, done, results, counts, dead)
        self.settled = self.settled and committed
        return committed

    def _retried(self, act: Callable[..., T], *arguments: Any) -> T:
        """Try until the backend can write: a full disk may soon have space again."""
        while True:
            try:
                return act(*arguments)
            except BackendUnavailableError as error:
                log.warning("%s %d waits: %s", *self.name, error)
                time.sleep(UNAVAILABLE_SECONDS)

    def _follow(self) -> bool:
        """Look for news; False when somebody else acts for this member."""
        self._looked = now = monotonic()
        self.settled = False
        self.pressure.look_again()
        newest = self.board.plan(self.plan)
        if newest is not self.plan:
            self.plan, self.owned = newest, newest.lanes(self.name)
            for router in self.routers:
                router.follow(newest)
            self._asked_for_lanes = 0.0
        listening = [router for router in self.routers if router.listens]
        if listening:
            named = list(dict.fromkeys(name for each in listening for name in each.successors))
            self._feedback_seen, news = self.board.feedback(self.name, named, self._feedback_seen)
            for operator, feedback in news:
                for router in listening:
                    router.learn(operator, feedback)
        if now - self._beaten > BEAT_SECONDS:
            with suppress(BackendUnavailableError):
                self.board.beat(self.name)
                self._beaten = now
        return self.lanes.joined()

    def _step_and_wait(self) -> bool:
        """Do a step, then sleep until there may be work; whether there may be news."""
        try:
            return self.lanes.wait(self.step())
        except BackendUnavailableError as error:
            log.warning("%s %d waits: %s", *self.name, error)
            time.sleep(UNAVAILABLE_SECONDS)
            return True

    def _stand_by(self, name: MemberName, error: str) -> None:
        """Report why we cannot continue, and keep the place until dismissed.

        If the process ended, Spark would start it again and again, to the same end.
        """
        self._retried(self.board.report_failure, self.generation, name, error)
        while self._retried(self.lanes.joined):
            try:
                self.lanes.wait(STAND_BY_SECONDS)
                self.board.beat(self.name)
            except BackendUnavailableError:
                time.sleep(UNAVAILABLE_SECONDS)
