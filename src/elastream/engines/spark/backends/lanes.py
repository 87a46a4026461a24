"""The queues between operators, and who may work on them.

Work is done in commits. A commit takes events out of lanes, puts results into others, and adds to
the counts: all of it or nothing. A lane has an ownership number, which grows whenever it changes
hands; a commit by a member that has lost a lane is refused, so what two processes worked on is
emitted once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Parcel, Taken

SHARED_LANE = -1
"""The lane that all replicas of an operator take from, first come, first served."""


class Lanes(ABC):
    """The queues, as one member of a pipeline sees them."""

    more: bool
    """Whether the last `take` left something for the next."""

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
    def hold(
        self, wanted: frozenset[int], by_force: frozenset[int] = frozenset()
    ) -> frozenset[int]:
        """Release the lanes that are held but not wanted, and take those that are wanted and free.

        Args:
            wanted: The lanes that the plan gives to this member.
            by_force: Those of them to take hold of even if their former owner has not released
                them.

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
    def busy(self, name: MemberName) -> bool:
        """Whether a replica has anything to do, as far as is known.

        It is asked for every unit of events, so it must be quick; it need not be of this moment.
        """

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
