"""The plan, who does what, what went wrong, and what replicas tell producers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from elastream.core.groupings.base import Feedback
from elastream.core.lanes import Owners
from elastream.engines.spark.backends.members import Attendance, MemberName


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


class Board(ABC):
    """The plan, membership, failures and feedback."""

    @abstractmethod
    def plan(self, known: LanePlan = NO_PLAN) -> LanePlan:
        """The newest plan; the known one itself if there is none newer."""

    @abstractmethod
    def publish(self, plan: LanePlan) -> None:
        """Make this the newest plan, and wake everybody whom it concerns.

        An inactive replica that stays so need not know at once.
        """

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
        """Let a generation begin: its members take over from all before.

        The roles of those are gone, and so are their failures.
        """

    @abstractmethod
    def may_begin(self, generation: int, role: MemberName) -> bool | None:
        """Whether the generation was started; None if the role is not on offer any more."""

    @abstractmethod
    def abandon(self, generation: int) -> None:
        """Withdraw the roles of a generation that was not started: its workers end.

        Why they could not work is forgotten.
        """

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

        Without names this goes for all; no role is on offer, and failures and feedback are
        forgotten.
        """

    def dismiss_after_a_death(self) -> None:
        """Dismiss everybody whom a run could not dismiss because it was killed.

        One of their events may have killed it.
        """
        self.report_deaths({name: of.process for name, of in self.members().items()})
        self.dismiss()

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
    def report_failure(self, generation: int, name: MemberName, error: str) -> None:
        """Say why a member of a generation cannot work."""

    @abstractmethod
    def failures(self, generation: int | None = None) -> Mapping[MemberName, str]:
        """Why members of a generation, or else of the running one, cannot work.

        A member that joins again clears its failure.
        """

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
