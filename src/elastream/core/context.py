"""What a function can learn about the events that it is called with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """Identifies the events of a call, so that a function can recognise what it has seen before.

    A function that has a parameter with this annotation gets a context with every call:

        def store(rows: list, context: elastream.Context) -> None: ...

    The engine repeats a unit when it cannot know whether the unit was done: after a process has
    died, or when a lane was taken from a replica that did not release it in time. The unit then has
    the same name and the same events, so what you stored under `unit` and `first` tells you that
    you have seen them. A function on batches should add their length: see "What is repeated" in the
    documentation.

    Examples:
        >>> Context("store", 2, "6f1c", attempt=1).key
        '6f1c/0'
    """

    operator: str
    replica: int
    """The number of the replica in its pool; after a hand-over it may be another one."""
    unit: str
    """The name of the unit of work; no other unit of any pipeline has it."""
    attempt: int
    """1 if nobody has worked on the unit before; a higher number may be a repetition."""
    first: int = 0
    """The position of the event within its unit; of a batch, that of its first event.

    A function on batches usually gets whole units, so this is 0. After an error, it gets halves of
    the unit, until the events to blame are found. It also gets parts of a unit if the lanes of its
    operator were changed while the unit waited.
    """

    @property
    def key(self) -> str:
        """The unit and the position in one: for a function on single rows, the key of the row."""
        return f"{self.unit}/{self.first}"
