"""The contract of an outbox: where an operator's output waits for a streaming query to read it.

Batches have tickets that grow. A query reads from one ticket to another, as often as it must, and
says up to which it needs nothing any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator


def output_queue(operator: str) -> str:
    """The queue that an operator's output waits in: no operator can have such a name."""
    return f"{operator}:output"


class Outbox(ABC):
    """What one operator has put out and nobody has consumed."""

    @abstractmethod
    def newest(self) -> int:
        """The ticket of the newest batch: there will be no other below it."""

    @abstractmethod
    def read(self, after: int, upto: int) -> Iterator[bytes]:
        """The batches with these tickets, as Arrow IPC streams, oldest first."""

    @abstractmethod
    def consume(self, upto: int) -> None:
        """Remove all batches up to this ticket."""

    @abstractmethod
    def consumed(self) -> int:
        """The ticket up to which batches were removed; 0 before the first."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held."""
