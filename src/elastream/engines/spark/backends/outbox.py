"""The way out to a DataFrame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator


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
