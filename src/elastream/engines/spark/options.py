"""What to do when an operator fails or a queue is full."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from elastream.engines.base import WhenFull

QUEUE_SIZE = 100_000


class OnError(StrEnum):
    """What happens to events that make an operator raise."""

    SET_ASIDE = "set-aside"
    """They become dead letters; all others continue."""
    FAIL = "fail"
    """The run ends with the error; they stay in their queue."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the members of a pipeline deal with errors and with full queues."""

    queue_size: int = QUEUE_SIZE
    """How many events may wait for an operator."""
    on_full: WhenFull = WhenFull.BLOCK
    on_error: OnError = OnError.SET_ASIDE
