"""The contract of an inbox: where a streaming query leaves events for a source to hand on.

Spark runs a task again when it failed, and a whole batch of a query again after a crash. So a task
only *stages* what it has, in a parcel of its own; when all tasks of a batch are done, the driver
*admits* their parcels, all or nothing, and every batch of the query once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

NOTHING_ADMITTED = -1


class Inbox(ABC):
    """What waits for one source of a pipeline."""

    @abstractmethod
    def stage(self, parcel: str, events: int, data: bytes) -> None:
        """Put events, as an Arrow IPC stream, into a parcel; nobody sees them yet."""

    @abstractmethod
    def admit(self, number: int, parcels: Mapping[str, int]) -> bool:
        """Let a batch of the query in: from now on its events wait for the source.

        Args:
            number: The batch's number; a higher one comes later.
            parcels: What its tasks staged, and how many events there are in each.

        Returns:
            False when this batch, or a later one, was let in before: its events are there already.
        """

    @abstractmethod
    def admitted(self) -> int:
        """The number of the newest batch that was let in, or `NOTHING_ADMITTED`."""

    @abstractmethod
    def discard(self) -> None:
        """Throw away what was staged and not admitted: whoever staged it is gone."""

    @abstractmethod
    def waiting(self) -> int:
        """How many events were let in and not handed on yet."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held."""
