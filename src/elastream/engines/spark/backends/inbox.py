"""The way in from a DataFrame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

NOTHING_ADMITTED = -1


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
