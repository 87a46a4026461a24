"""The contract of a transport: bounded queues, the current plan, and what replicas count.

A replica *joins*, and from then on nobody else can act for it: a process that was replaced, but
does not know it yet, has its next commit refused. Work is done in commits. A commit takes batches
out of their queue, puts the results into others, and adds to the counts, all of it or nothing, so
a batch that two processes worked on is emitted once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from elastream.core.groupings.base import Feedback, SyncRequest, Utilization
from elastream.core.latency import LatencyHistogram

ReplicaName = tuple[str, int]
"""An operator or a source, and the number of a replica in its pool."""

NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a producer asks of a replica, along with events."""

    producer: ReplicaName
    requests: tuple[SyncRequest, ...]


class StoredBatch(NamedTuple):
    """Events that wait for an operator."""

    operator: str
    replica: int
    """Whose queue it is in: a replica's number, or `SHARED_QUEUE`."""
    events: int
    born: float
    """When its events arrived at their source, in seconds since 1970."""
    data: bytes
    """The events, as an Arrow IPC stream."""
    inquiry: Inquiry | None = None
    ticket: int = 0
    """Its place in the queue, given by the transport."""


def mean_birth(batches: Sequence[StoredBatch]) -> float:
    """When their events arrived at their source, on average."""
    if len(batches) == 1:
        return batches[0].born
    return sum(b.born * b.events for b in batches) / sum(b.events for b in batches)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Events that an operator could not process, and the error."""

    operator: str
    events: int
    error: str
    data: bytes
    """The events, as an Arrow IPC stream."""
    time: float = 0.0
    """When it was set aside, in seconds since 1970; given by the transport."""
    number: int = 0
    """Given by the transport: a higher one came later."""


class Counts(NamedTuple):
    """What a replica did, to be added to what it did before."""

    processed: int = 0
    emitted: int = 0
    dropped: int = 0
    busy: float = 0.0
    """Seconds in the operator's function."""
    cpu: float = 0.0
    """Seconds of processor time."""
    sent: Mapping[str, int] = NONE
    """Events per successor."""
    lost: Mapping[str, int] = NONE
    """Those among them that were dropped because its queue was full."""
    latency: LatencyHistogram | None = None
    """From the source to here, where events leave the pipeline."""


@dataclass(frozen=True, slots=True)
class ActivePlan:
    """Which replicas are active, and how busy they were when it was made."""

    active: Mapping[str, tuple[int, ...]]
    utilization: Mapping[str, Utilization] = field(default_factory=dict)
    version: int = 0
    """Grows with every plan that is published."""


NO_PLAN = ActivePlan({})
"""Before the first one: nothing moves."""


@dataclass(frozen=True, slots=True)
class Totals:
    """All that was counted since the state folder was made, and what waits now."""

    counts: Mapping[ReplicaName, Counts]
    queued: Mapping[ReplicaName, int]


class SupersededError(Exception):
    """A replica of a later generation is at work: this one came too late."""


class Transport(ABC):
    """Queues between operators, for every process of a pipeline."""

    @abstractmethod
    def claim(self, pipeline: str) -> None:
        """Keep the state of this pipeline here; an error if it is another pipeline's."""

    @abstractmethod
    def join(self, name: ReplicaName) -> None:
        """Act for a replica from now on, instead of whoever did before.

        Raises:
            SupersededError: Whoever does is of a later generation. Spark may start a task again
                whose place the next generation has taken, also while the driver that it was
                started by is dying.
        """

    @abstractmethod
    def members(self) -> Mapping[ReplicaName, str]:
        """The replicas that somebody acts for, and who: `process:word`, never the same twice."""

    @abstractmethod
    def dismiss(self, names: Sequence[ReplicaName] | None = None) -> None:
        """Nobody acts for these replicas any more: those that run end.

        Without names nobody acts for any, and why replicas could not start is forgotten, too.
        """

    @abstractmethod
    def report_failure(self, name: ReplicaName, error: str) -> None:
        """Say why a replica could not even start."""

    @abstractmethod
    def failures(self) -> Mapping[ReplicaName, str]:
        """Why replicas could not start; one that joins later has none any more."""

    @abstractmethod
    def owns(self) -> bool:
        """Whether nobody has joined in this process's place."""

    @abstractmethod
    def take(self, most: int, shared: bool) -> list[StoredBatch]:
        """The next batches of the own queue, or of the operator's shared one.

        At least one if there is any, and then more while they add up to at most `most` events.
        They stay where they are until they are committed, but nobody else can take them.
        """

    @abstractmethod
    def commit(
        self,
        done: Sequence[StoredBatch],
        results: Sequence[StoredBatch],
        counts: Counts,
        dead: Sequence[DeadLetter] = (),
    ) -> bool:
        """Replace batches by their results; a source has none to replace.

        Returns:
            False when they were not ours to replace any more. Then nothing has happened.
        """

    @abstractmethod
    def share_out(self, operator: str, active: Sequence[int]) -> None:
        """Move what waits for an operator's replicas to those that are active, evenly.

        What a replica may be working on stays. If it was moved all the same, the commit of the one
        who has lost it is refused, and the work is done again by the other.
        """

    @abstractmethod
    def gather(self, operator: str, queues: Sequence[int]) -> None:
        """Move what waits in any other queue of an operator into these, while nobody works.

        A pool may have become smaller since events were put into its queues.
        """

    @abstractmethod
    def tell(self, producers: Iterable[ReplicaName], feedback: Feedback) -> None:
        """Leave word for producers; it replaces older word of the same kind from this replica."""

    @abstractmethod
    def hear(self) -> list[tuple[str, Feedback]]:
        """What replicas have left word of for this producer since the last call: by operator."""

    @abstractmethod
    def waiting(self, operator: str) -> int:
        """How many events wait for an operator."""

    @abstractmethod
    def plan(self, known: ActivePlan = NO_PLAN) -> ActivePlan:
        """The newest plan; the very one that is known if there is none newer."""

    @abstractmethod
    def publish(self, plan: ActivePlan) -> None:
        """Make this the newest plan, and wake everybody."""

    @abstractmethod
    def totals(self) -> Totals:
        """What all replicas have counted, and what waits for them."""

    @abstractmethod
    def dead_letters(self, operator: str | None = None) -> Iterator[DeadLetter]:
        """What operators could not process, or one of them, newest first."""

    @abstractmethod
    def retry(self, dead: Sequence[DeadLetter]) -> int:
        """Put dead letters back into the queues that they came from.

        Returns:
            How many: one that somebody else has put back is left alone.
        """

    @abstractmethod
    def wait(self, seconds: float) -> bool:
        """Sleep until there is something to look at, but no longer than that.

        Not at all if the last `take` left something for the next.

        Returns:
            Whether there is news: a plan, or a dismissal.
        """

    @abstractmethod
    def sweep(self) -> None:
        """Remove what only running replicas need, when none runs any more."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held."""
