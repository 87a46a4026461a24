"""What a backend offers: the state of a pipeline, behind a few small ports.

| port | what it holds |
| --- | --- |
| `Lanes` | the queues between operators, and who may work on them |
| `Board` | the plan, who does what, what went wrong, and what replicas tell producers |
| `Ledger` | what members have counted |
| `DeadLetters` | events that could not be processed |
| `Inbox`, `Outbox` | the way in from a DataFrame, and the way out to one |

A backend is a small value that travels to any process and opens connections there. Nothing outside
its package knows what is behind it.

Work is done in commits. A commit takes events out of lanes, puts results into others, and adds to
the counts: all of it or nothing. A lane has an ownership number, which grows whenever it changes
hands; a commit by a member that has lost a lane is refused, so what two processes worked on is
emitted once.
"""

from __future__ import annotations

import os
import socket
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from elastream.core.groupings.base import Feedback, SyncRequest
from elastream.core.lanes import Owners, lanes_of_keys
from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.births import Births
from elastream.engines.spark.keys import key_values

if TYPE_CHECKING:
    from elastream.engines.spark.backends.kept import Kept

MemberName = tuple[str, int]
"""An operator or a source, and the number of a replica in its pool."""

SHARED_LANE = -1
"""The lane that all replicas of an operator take from, first come, first served."""
NOTHING_ADMITTED = -1
NO_EVENTS: Mapping[str, int] = MappingProxyType({})


class SupersededError(Exception):
    """A member of a later generation is at work: this one came too late."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What a producer asks of a replica, along with events."""

    producer: MemberName
    asked: tuple[SyncRequest, ...]


class Parcel(NamedTuple):
    """Events on their way to an operator, as a producer sends them.

    They may be for several lanes: then `lane_of` has one number per event; they are stored once.
    """

    operator: str
    lane: int
    events: int
    births: Births
    data: bytes
    """The events, as an Arrow IPC stream."""
    lane_of: NDArray[np.uint16] | None = None
    requests: Requests | None = None

    @classmethod
    def for_lanes(
        cls, operator: str, lane_of: NDArray[np.intp], births: Births, data: bytes
    ) -> Parcel:
        """Events, each of which has a lane."""
        first, events = int(lane_of[0]), len(lane_of)
        several = None if (lane_of == first).all() else lane_of.astype(np.uint16)
        return cls(operator, first, events, births, data, several)


class Place(NamedTuple):
    """Some events of one lane, as they were taken."""

    number: int
    """Given by the backend; a higher one came later."""
    lane: int
    events: int
    whole: bool
    """Whether nothing of it is left in the lane."""
    parcel: int | None = None
    """The number of the parcel that it is a part of, if it is."""


class Unit(NamedTuple):
    """The name of a unit of work, which never changes, whichever replica takes it."""

    name: str
    """No other unit of any state has it."""
    first: int
    """How many events of its stored batch come before it."""
    events: int
    attempt: int
    """How often it was taken."""
    at: int | None = None
    """Where it begins in the unit that it is a part of; None if it is whole: see `moving`."""


class Taken(NamedTuple):
    """Events that a member works on. They stay in their lanes until they are committed."""

    data: bytes
    events: int
    births: Births
    places: tuple[Place, ...]
    chosen: NDArray[np.intp] | None = None
    """Which rows of the data they are; all unless given."""
    requests: Requests | None = None
    deaths: int = 0
    """How many processes have died while it was next in its lane: it may be the cause."""
    unit: Unit | None = None
    """Its name, if one was asked for."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Events that an operator could not process, and the error."""

    operator: str
    events: int
    error: str
    data: bytes
    """The events, as an Arrow IPC stream."""
    lane: int = 0
    """Where they came from; tried again, they go to its end."""
    time: float = 0.0
    """When it was set aside, in seconds since 1970; given by the backend."""
    number: int = 0
    """Given by the backend: a higher one came later."""


class Counts(NamedTuple):
    """What a member did, to be added to its earlier counts."""

    processed: int = 0
    emitted: int = 0
    dropped: int = 0
    busy: float = 0.0
    """Seconds in the operator's function."""
    cpu: float = 0.0
    """Seconds of processor time."""
    sent: Mapping[str, int] = NO_EVENTS
    """Events per successor."""
    lost: Mapping[str, int] = NO_EVENTS
    """Those among them that were dropped because its lanes were full."""
    latency: LatencyHistogram | None = None
    """From the source to here, where events leave the pipeline."""
    saturated: float = 0.0
    """Seconds from one unit of events to the next, while more waited."""
    saturated_events: int = 0
    """Events processed in that time."""
    units: int = 0
    """How many times events were taken and processed; a chain counts as one operator."""
    squares: float = 0.0
    """The time of a unit squared, by its events, over all units: how much execution times vary."""
    chained: Mapping[str, Counts] = NO_EVENTS  # type: ignore[assignment] # it is empty
    """What the operators did that are chained to it; it counts for their replicas of its number."""


@dataclass(frozen=True, slots=True)
class LanePlan:
    """Which replicas are active, and which lanes each of them owns."""

    active: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    owners: Mapping[str, Owners] = field(default_factory=dict)
    """By operator: the replica that owns each lane."""
    admits: bool = True
    """Whether sources let events in."""
    version: int = 0
    """Grows with every plan that is published."""
    halted: bool = False
    """Whether replicas stop taking events; sources continue."""

    def lanes(self, member: MemberName) -> frozenset[int]:
        """The lanes that a replica owns."""
        operator, replica = member
        owners = self.owners.get(operator, ())
        return frozenset(lane for lane, owner in enumerate(owners) if owner == replica)


NO_PLAN = LanePlan()
"""Before the first one: nothing moves."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """Who acts for a member."""

    process: str
    """Never the same for two processes; see `this_process`."""
    generation: int
    heartbeat: int
    """Grows as long as the process is well."""
    busy_for: float
    """How long the function had been running at the last heartbeat, in seconds."""

    @property
    def pid(self) -> int:
        """The process id on the machine that it runs on."""
        return int(self.process.partition(":")[0])

    @property
    def machine(self) -> tuple[str, int] | None:
        """The machine that it runs on, and how many cores that has; None if it did not say.

        >>> Attendance("12:5ca1ab1e:8:left", 1, heartbeat=5, busy_for=0.0).machine
        ('left', 8)
        """
        _, _, where = self.process.partition(":")
        _, told, where = where.partition(":")
        cores, _, host = where.partition(":")
        return (host, int(cores)) if told else None


def this_process() -> str:
    """A name that no other process has: process id, something random, cores and machine."""
    machine = f"{os.cpu_count() or 1}:{socket.gethostname()}"
    return f"{os.getpid()}:{uuid.uuid4().hex}:{machine}"


class LaneState(NamedTuple):
    """One lane at a glance."""

    arrived: int
    """Events that were ever put into it."""
    waiting: int
    owner: int | None
    """The replica that has taken hold of it; None between two owners."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Everything counted since the state began, and what waits now."""

    counts: Mapping[MemberName, Counts]
    lanes: Mapping[str, Mapping[int, LaneState]]
    """By operator and lane. A source that a DataFrame feeds has one, too."""

    def waiting(self, operator: str) -> int:
        """How many events wait for an operator."""
        return sum(lane.waiting for lane in self.lanes.get(operator, {}).values())


class Lanes(ABC):
    """The queues, as one member of a pipeline sees them."""

    @abstractmethod
    def join(self, name: MemberName, generation: int) -> None:
        """Act for a member from now on; commits of whoever did before are refused.

        If its predecessor is of the same generation, it has died: that is noted on what it may have
        been working on.

        Raises:
            SupersededError: Whoever does is of a later generation. Spark may start a task again
                whose place the next generation has taken, also while its driver is dying.
        """

    @abstractmethod
    def joined(self) -> bool:
        """Whether this process still acts for the member."""

    @abstractmethod
    def hold(self, wanted: frozenset[int], by_force: bool = False) -> frozenset[int]:
        """Release the lanes that are held but not wanted, and take those that are wanted and free.

        Args:
            wanted: The lanes that the plan gives to this member.
            by_force: Also take hold of lanes that their former owner has not released.

        Returns:
            The lanes that are held now.
        """

    @abstractmethod
    def take(self, most: int, shared: bool = False, named: bool = False) -> list[Taken]:
        """The next events of the lanes that are held, or of the operator's shared one.

        At least one event if there is any, and then about `most`: a stored batch is cut only when
        it is much larger. They stay where they are until they are committed; taking again gives
        the same, except from the shared lane.

        Args:
            most: How many.
            shared: From the shared lane.
            named: As units with names: each has events of one lane only, which are the same and
                have the same name when they are taken again, also by another member.
        """

    @property
    @abstractmethod
    def more(self) -> bool:
        """Whether the last `take` left something for the next."""

    @abstractmethod
    def commit(
        self,
        done: Sequence[Taken],
        results: Sequence[Parcel],
        counts: Counts,
        dead: Sequence[DeadLetter] = (),
    ) -> bool:
        """Replace events by their results; a source has none to replace.

        Returns:
            False when a lane has changed hands meanwhile. Then nothing has happened.
        """

    @abstractmethod
    def lengths(self, operator: str) -> Mapping[int, int]:
        """How many events wait in each lane of an operator that ever had any."""

    @abstractmethod
    def begun(self, operator: str) -> bool:
        """Whether units with names wait for an operator: somebody has begun to work on them."""

    @abstractmethod
    def wait(self, seconds: float) -> bool:
        """Sleep until there may be work, at most this long.

        Not at all if the last `take` left something for the next.

        Returns:
            Whether there is news: a plan, a lane that was released, or a dismissal.
        """


class Board(ABC):
    """The plan, membership, failures and feedback."""

    @abstractmethod
    def plan(self, known: LanePlan = NO_PLAN) -> LanePlan:
        """The newest plan; the known one itself if there is none newer."""

    @abstractmethod
    def publish(self, plan: LanePlan) -> None:
        """Make this the newest plan, and wake everybody."""

    @abstractmethod
    def new_generation(self, roles: Sequence[MemberName]) -> int:
        """Offer these roles to the workers of a new generation, the most important ones first.

        The generation before works on until the new one is started.

        Returns:
            The number of the generation: one more than the last one's.
        """

    @abstractmethod
    def take_role(self, generation: int, worker: int) -> MemberName | None:
        """A role for a worker: the one that it has, or the first free one; else None."""

    @abstractmethod
    def report_ready(self, generation: int, role: MemberName) -> None:
        """Mark a role as set up: its worker can begin when the generation is started."""

    @abstractmethod
    def ready(self, generation: int) -> frozenset[MemberName]:
        """The roles of a generation that are ready to begin."""

    @abstractmethod
    def start(self, generation: int) -> None:
        """Let a generation begin: its members take over from all before, whose roles are gone."""

    @abstractmethod
    def may_begin(self, generation: int, role: MemberName) -> bool | None:
        """Whether the generation was started; None if the role is not on offer any more."""

    @abstractmethod
    def abandon(self, generation: int) -> None:
        """Withdraw the roles of a generation that was not started: its workers end."""

    @abstractmethod
    def reassign(self, role: MemberName, to: MemberName) -> bool:
        """Move the worker that has a role of the running generation to a free one."""

    @abstractmethod
    def roles(self) -> Mapping[MemberName, int | None]:
        """The roles of the running generation, most important first, and the worker of each."""

    @abstractmethod
    def vacate(self, names: Sequence[MemberName]) -> None:
        """Free these roles of the running generation: nobody acts for the members any more.

        A worker that had one, and is still there or comes back, takes the first free role.
        """

    @abstractmethod
    def report_deaths(self, dead: Mapping[MemberName, str]) -> None:
        """Say that processes died at their work: that is noted on what each may have worked on.

        Their lanes are free, and nobody acts for the members any more. A member that another
        process acts for by now is left alone: the death was noted when that one joined.

        Args:
            dead: The process that acted for each member.
        """

    @abstractmethod
    def members(self) -> Mapping[MemberName, Attendance]:
        """The members that somebody acts for."""

    @abstractmethod
    def dismiss(self, names: Sequence[MemberName] | None = None) -> None:
        """Nobody acts for these members any more, and their lanes are free: those that run end.

        Without names this goes for all; no role is on offer, and failures are forgotten.
        """

    @abstractmethod
    def beat(self, name: MemberName, busy_for: float = 0.0) -> None:
        """Say that a member is well, and how long its function has been running."""

    @abstractmethod
    def probe(self) -> None:
        """Write something meaningless: only a write shows whether writing works.

        Raises:
            BackendUnavailableError: It cannot.
        """

    @abstractmethod
    def report_failure(self, name: MemberName, error: str) -> None:
        """Say why a member cannot work."""

    @abstractmethod
    def failures(self) -> Mapping[MemberName, str]:
        """Why members cannot work; a member that joins again clears its failure."""

    @abstractmethod
    def post(
        self, sender: MemberName, feedback: Feedback, producers: Iterable[MemberName] | None = None
    ) -> None:
        """Let producers of an operator know; it replaces what the sender posted of its kind.

        Nobody is woken. Without producers, it is for all of them.
        """

    @abstractmethod
    def feedback(
        self, producer: MemberName, operators: Sequence[str], after: int
    ) -> tuple[int, list[tuple[str, Feedback]]]:
        """What was posted for a producer by or for these operators since the last call.

        Args:
            producer: Who asks.
            operators: Those that it sends to.
            after: What the last call returned; 0 at first.

        Returns:
            What to hand to the next call, and what is new, by operator.
        """


class Ledger(ABC):
    """What members have counted."""

    @abstractmethod
    def totals(self) -> Totals:
        """All counts, and the length of every lane. They need not be of the same moment."""

    @abstractmethod
    def counts(self, name: MemberName) -> Counts:
        """What one member has counted; nothing if it never did."""


class DeadLetters(ABC):
    """What operators could not process."""

    @abstractmethod
    def read(self, operator: str | None = None) -> Iterator[DeadLetter]:
        """All, or those of one operator, newest first."""

    @abstractmethod
    def errors(self, after: int) -> tuple[int, Mapping[tuple[str, str], int]]:
        """How many events were set aside since the last call, by operator and error.

        Args:
            after: What the last call returned; 0 at first.

        Returns:
            What to hand to the next call, and the events.
        """

    @abstractmethod
    def retry(self, letters: Sequence[DeadLetter]) -> int:
        """Put them at the ends of their lanes.

        Returns:
            How many: one that somebody else has put back is left alone.
        """


class Inbox(ABC):
    """Where a streaming query leaves events for one source to pass on.

    Spark runs a task again when it failed, and a whole batch of a query again after a crash. So a
    task only *stages* what it has; when all tasks of a batch are done, the driver *admits* what
    they staged, all or nothing, and every batch of the query once.
    """

    @abstractmethod
    def stage(self, name: str, events: int, data: bytes) -> None:
        """Put events, as an Arrow IPC stream, under a task's own name; nobody sees them yet."""

    @abstractmethod
    def admit(self, number: int, staged: Mapping[str, int]) -> bool:
        """Let a batch of the query in: from now on its events wait for the source.

        Args:
            number: The batch's number; a higher one comes later.
            staged: The names that its tasks used, and how many events there are under each.

        Returns:
            False when this batch, or a later one, was let in before: its events are there already.
        """

    @abstractmethod
    def admitted(self) -> int:
        """The number of the newest batch that was let in, or `NOTHING_ADMITTED`."""

    @abstractmethod
    def discard(self) -> None:
        """Discard what was staged but not admitted: the task that staged it is gone."""

    @abstractmethod
    def waiting(self) -> int:
        """How many events were admitted but not passed on yet."""

    @abstractmethod
    def close(self) -> None:
        """Release everything that is held."""


class Outbox(ABC):
    """Where one operator's output waits for a streaming query to read it.

    Batches have numbers that grow. A query reads from one number to another, as often as it must,
    and says up to which it needs nothing any more.
    """

    @abstractmethod
    def newest(self) -> int:
        """The number of the newest batch: there will be no other below it."""

    @abstractmethod
    def read(self, after: int, upto: int) -> Iterator[bytes]:
        """The batches with these numbers, as Arrow IPC streams, oldest first."""

    @abstractmethod
    def consume(self, upto: int) -> None:
        """Remove all batches up to this number."""

    @abstractmethod
    def consumed(self) -> int:
        """The number up to which batches were removed; 0 before the first."""

    @abstractmethod
    def close(self) -> None:
        """Release everything that is held."""


def output_of(operator: str) -> str:
    """What the lane of an operator's output belongs to: no operator can have such a name."""
    return f"{operator}:output"


def is_output(name: str) -> bool:
    """Whether it is the lane of an output."""
    return name.endswith(":output")


@dataclass(frozen=True, slots=True)
class OperatorLanes:
    """How an operator's events are laid out."""

    lanes: int
    key: str | None = None
    """The column whose hash is the lane, if there is one."""
    shared: bool = False
    """Whether they all wait in the shared lane."""
    chained_to: str | None = None
    """The operator that hands it events without a lane; only what is tried again has one then."""

    def fitting(self, lane: int) -> int:
        """Where the events of a lane belong under a layout that may not have it."""
        return SHARED_LANE if self.shared else lane % self.lanes

    def lane_again(self, letter: DeadLetter) -> int:
        """Where a dead letter is tried again: in its key's lane, or else in that which it had."""
        if self.key is not None and not self.shared:
            table = from_bytes(letter.data)
            if self.key in table.column_names:
                first = table.column(self.key).slice(0, 1)
                return int(lanes_of_keys(key_values(first), self.lanes)[0])
        return self.fitting(letter.lane)


class Connection(ABC):
    """The ports of a backend, for one process or thread."""

    lanes: Lanes
    board: Board
    ledger: Ledger
    dead_letters: DeadLetters

    @abstractmethod
    def close(self) -> None:
        """Release everything that is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self.close()


@dataclass
class Ownership:
    """That a driver acts on a state."""

    lost: str = ""
    """Why it may do so no longer, in words; empty while it may."""


class Backend(ABC):
    """Where a pipeline's state lives. It is a value: it can be sent to another process."""

    @property
    @abstractmethod
    def url(self) -> str:
        """What `open_backend` makes it from; it never shows a secret."""

    @property
    @abstractmethod
    def exists(self) -> bool:
        """Whether a run has used it."""

    @property
    @abstractmethod
    def checkpoints(self) -> str:
        """Where Spark notes how far DataFrames were read; empty if nobody has said where."""

    @property
    def local_folder(self) -> Path:
        """A folder on this machine, for what need not outlive it: there unless named elsewhere."""
        return Path(self.checkpoints)

    @abstractmethod
    def own(self) -> AbstractContextManager[Ownership]:
        """Be the only driver that acts on it, as long as this lasts; an error if another does."""

    @abstractmethod
    def prepare(self, pipeline: str, operators: Mapping[str, OperatorLanes]) -> None:
        """Lay out the lanes of a pipeline, while nobody works.

        What waits under another layout is moved. An error if the state is another pipeline's.
        """

    @abstractmethod
    def layout(self) -> Mapping[str, OperatorLanes]:
        """How lanes were laid out last, by operator; nothing if no run has used it."""

    @abstractmethod
    def connect(self) -> Connection:
        """The ports, for one process or thread."""

    @abstractmethod
    def inbox(self, source: str) -> Inbox:
        """The inbox of a source."""

    @abstractmethod
    def outbox(self, operator: str) -> Outbox:
        """The outbox of an operator."""

    @abstractmethod
    def clear(self, operator: str) -> int:
        """Drop what waits for an operator, counted as dropped; returns how many events it was."""

    @abstractmethod
    def sweep(self) -> None:
        """Remove what only running members need, when none runs any more."""

    @abstractmethod
    def described(self) -> tuple[str, Mapping[str, OperatorLanes]] | None:
        """The pipeline whose state it is, and the layout of its lanes; None if it is nobody's."""

    @abstractmethod
    def kept(self) -> Iterator[Kept]:
        """Everything that outlives a run, while nobody works: see `backends.kept`."""

    @abstractmethod
    def restore(
        self, pipeline: str, operators: Mapping[str, OperatorLanes], kept: Iterable[Kept]
    ) -> None:
        """Fill an empty state: if it fails, no run will take what is there for a state.

        Raises:
            InvalidInputError: It is somebody's already.
        """

    @abstractmethod
    def check_removable(self) -> None:
        """Say what keeps it from being removed, before anybody is asked about it.

        Raises:
            InvalidInputError: A driver acts on it, or it is a person's to remove.
        """

    @abstractmethod
    def remove(self) -> list[str]:
        """Remove the state, with every event in it; the names of what was removed.

        Raises:
            InvalidInputError: As `check_removable` says.
        """
