"""The contract of a grouping: a batch of events in, one replica for every event out.

A grouping is an immutable value. What it remembers between batches is a state of its own type that
the caller keeps: `start` makes it, `route` and `learn` return the next one. So a state can be
stored, copied and sent, and both engines use the same code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.hashing import one_by_one
from elastream.core.stats import OperatorStats, ReplicaStats
from elastream.errors import InvalidInputError

Indices = NDArray[np.intp]
S = TypeVar("S")

SHARED_QUEUE = -1
"""The replica number of an event that waits for whichever replica is free first."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a grouping sees of a batch: the number of events, and their keys if it uses keys."""

    count: int
    keys: NDArray[Any] | None = None

    @classmethod
    def of(cls, keys: ArrayLike) -> Batch:
        """A batch of events with these keys."""
        array = one_by_one(keys)
        return cls(len(array), array)


ONE_EVENT = Batch(1)


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """OSG: asks a replica how much work it has really done, along with an event of the batch."""

    position: int
    """Which event of the batch carries it."""
    replica: int
    round_number: int
    """How many times the scheduler has asked all replicas."""
    estimate: float
    """The scheduler's estimate of the replica's total work, in seconds."""


class Routing(NamedTuple, Generic[S]):
    """Where the events of a batch go, and the state for the next batch."""

    replicas: Indices
    """One replica of the pool for every event, or `SHARED_QUEUE`."""
    state: S
    requests: tuple[SyncRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class Utilization:
    """Feedback: how busy every replica of the pool was in the last interval (PA-SPS equation 1)."""

    of_replicas: tuple[float, ...]
    per_event: float
    """What one more event adds: et_i / td."""


@dataclass(frozen=True, slots=True)
class ReplicaLoads:
    """Feedback to all producers: the queue and the speed of every replica of the pool.

    An engine tells all producers the same, at least once a second.
    """

    queued: tuple[float, ...]
    """Events that wait for each."""
    per_event: tuple[float, ...]
    """Seconds that an event occupies each; 0 where nothing has been measured."""
    utilization: tuple[float, ...]
    """The share of the period in which each was busy."""
    arriving: float
    """Events per second, from all producers together."""
    period: float
    """Seconds between two of these messages."""

    @classmethod
    def of(cls, stats: OperatorStats, pool: int, seconds: float) -> ReplicaLoads:
        """From the statistics of an operator, with its pool and the length of the period."""
        replicas = [stats.replicas.get(number, _NEVER_USED) for number in range(pool)]
        return cls(
            queued=tuple(replica.queued for replica in replicas),
            per_event=tuple(_seconds_per_event(replica, seconds) for replica in replicas),
            utilization=tuple(min(replica.busy / seconds, 1.0) for replica in replicas),
            arriving=stats.received / seconds,
            period=seconds,
        )

    def in_units(self, events: float) -> ReplicaLoads:
        """The same for a producer that routes this many events as one."""
        return replace(
            self,
            queued=tuple(queued / events for queued in self.queued),
            per_event=tuple(seconds * events for seconds in self.per_event),
            arriving=self.arriving / events,
        )


_NEVER_USED = ReplicaStats(processed=0.0, busy=0.0)


def _seconds_per_event(replica: ReplicaStats, seconds: float) -> float:
    """Time in the function; for a replica that was never idle, all of its time."""
    if replica.processed <= 0:
        return 0.0
    in_function = replica.busy / replica.processed
    never_idle = replica.queued * in_function > seconds
    return max(in_function, seconds / replica.processed) if never_idle else in_function


@dataclass(frozen=True, slots=True)
class SketchReport:
    """Feedback from a replica to OSG: how often it saw its values, and what they cost."""

    replica: int
    frequency: NDArray[np.float64]
    time: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SyncReply:
    """Feedback from a replica to OSG: its real work less the scheduler's estimate, in seconds."""

    replica: int
    round_number: int
    """That of the request."""
    difference: float


Feedback = Utilization | ReplicaLoads | SketchReport | SyncReply


class ReplicaSide(Protocol):
    """What a replica does for a grouping that needs its feedback; an immutable value."""

    def execute(
        self, keys: ArrayLike, times: ArrayLike, requests: Iterable[SyncRequest] = ()
    ) -> tuple[ReplicaSide, tuple[Feedback, ...]]:
        """Record a batch; returns the next value and the feedback to send.

        A `SyncReply` is for the producer that asked, all else is for every producer.

        Args:
            keys: The key of every event that the replica executed.
            times: How long each took, in seconds.
            requests: The requests that came along; positions count this replica's events.
        """


class Grouping(ABC, Generic[S]):
    """Distributes the events of an operator among its active replicas."""

    name: ClassVar[str]
    needs_key: ClassVar[bool] = False
    """Whether it uses a column of the events."""
    key_is_lane: ClassVar[bool] = False
    """Whether events with the same key stay together and in order: the key chooses the lane."""
    shared_queue: ClassVar[bool] = False
    """Whether all events wait in one queue, for whichever replica is free first."""
    prefers_free: ClassVar[bool] = False
    """Whether to ask again, as long as the replica is busy and another is free: engines know."""
    listens_to: ClassVar[frozenset[type[Feedback]]] = frozenset()
    """The kinds of feedback that it learns from; an engine need not send others."""

    @abstractmethod
    def start(self, pool: int, producer: int = 0) -> S:
        """The state before the first batch.

        Args:
            pool: How many replicas there are to choose from.
            producer: The number of who sends. Producers do not know of each other; where it makes
                no difference, each starts with another replica, so that not all send to the same.
        """

    @abstractmethod
    def route(self, state: S, batch: Batch, active: ArrayLike) -> Routing[S]:
        """Choose one of the active replicas for every event of the batch."""

    def route_one(self, state: S, active: Sequence[int]) -> tuple[int, S]:
        """The same for one event without a key, which is by far the most frequent batch."""
        routing = self.route(state, ONE_EVENT, active)
        return int(routing.replicas[0]), routing.state

    def learn(self, state: S, feedback: Feedback) -> S:
        """Take in feedback; a grouping ignores what is not for it."""
        return state

    def after_a_move(self, state: S) -> S:
        """Queues have changed owners: what was asked along with events may not be answered."""
        return state

    def replica_side(self, replica: int) -> ReplicaSide | None:
        """What a replica of the pool has to do for this grouping; None for nothing."""
        return None


def checked_active(active: ArrayLike) -> Indices:
    """The active replicas as an array; there must be at least one."""
    replicas = np.asarray(active, dtype=np.intp)
    if replicas.ndim != 1 or not len(replicas):
        raise InvalidInputError("there is no active replica to send events to")
    return replicas


def checked_keys(batch: Batch, grouping: str) -> NDArray[Any]:
    """The keys of the batch; an error if it has none."""
    if batch.keys is None or len(batch.keys) != batch.count:
        raise InvalidInputError(f"the grouping {grouping!r} needs a key for every event")
    return batch.keys


def in_turn(active: Indices, turn: int, count: int) -> Indices:
    """Round robin: `count` replicas one after the other, starting at position `turn`.

    >>> in_turn(np.array([0, 2, 5]), 1, 4)
    array([2, 5, 0, 2])
    """
    first = turn % len(active)
    if first + count <= len(active):
        return active[first : first + count]
    return active[(turn + np.arange(count)) % len(active)]
