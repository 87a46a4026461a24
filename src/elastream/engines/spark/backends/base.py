"""What a backend offers: the state of a pipeline, behind a few small ports.

| port | what it holds |
| --- | --- |
| `lanes.Lanes` | the queues between operators, and who may work on them |
| `board.Board` | the plan, who does what, what went wrong, and what replicas tell producers |
| `ledger.Ledger` | what members have counted |
| `dead_letters.DeadLetters` | events that could not be processed |
| `inbox.Inbox`, `outbox.Outbox` | the way in from a DataFrame, and the way out to one |

A backend is a small value that travels to any process and opens connections there. Nothing outside
its package knows what is behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from elastream.engines.spark.backends.board import Board
from elastream.engines.spark.backends.dead_letters import DeadLetters
from elastream.engines.spark.backends.inbox import Inbox
from elastream.engines.spark.backends.lanes import Lanes
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Ledger
from elastream.engines.spark.backends.outbox import Outbox

if TYPE_CHECKING:
    from elastream.engines.spark.backends.kept import Kept


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

    def take_over(self) -> None:
        """Let nobody of an earlier run act on it any more: from now on, nothing in it moves."""
        if self.exists:
            # Before lanes move, and nobody knows any more who was working on what.
            with self.connect() as connection:
                connection.board.dismiss_after_a_death()

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
