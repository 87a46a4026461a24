"""Events that could not be processed, and where they wait for somebody to look at them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


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
