"""What a fleet needs from a provider of executors: three calls, none of which waits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Executor:
    """An executor that takes tasks."""

    name: str
    cores: int
    """How many tasks it runs at once; each may need several of the cores that Spark counts."""
    running: int = 0
    """Tasks at work."""
    blocks: int = 0
    """Cached blocks that it holds."""
    since: float = 0.0
    """When it came, in seconds since 1970."""
    shuffled: int = 0
    """How many bytes it has written for other tasks to read; with 0, it holds none of them."""
    new: bool = False
    """Whether it has had no task yet."""
    works: bool = True
    """Whether it does already what it was asked for; its lead time ends then."""

    @property
    def regret(self) -> tuple[int, int, bool, float]:
        """The lower, the sooner it is released: by what it does and holds, then the youngest.

        The youngest has had the least time to fill caches and to load state stores.
        """
        return self.running, self.blocks, self.shuffled > 0, -self.since


class Cluster(Protocol):
    """Where executors come from."""

    def list(self) -> Sequence[Executor]:
        """The executors that take tasks now."""

    def ask(self, total: int) -> None:
        """Keep this many in total; none is removed, and one that dies is replaced."""

    def release(self, names: Sequence[str]) -> Collection[str]:
        """Release these, except those whose loss would hurt now; returns which ones go.

        Those of the last call that are not named again, and have not gone, stay.
        """
