"""Where events enter a chain in its middle: dead letters that are tried again.

What the operator before puts out is handed over inside the replica. Only what an operator of a
chain could not process, and somebody retries, waits in a separate lane. The first active
replica of the chain looks there now and then, acting for that operator: on another
connection, which is opened when it is needed for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import monotonic

from elastream.engines.spark.backends.lanes import Lanes
from elastream.engines.spark.worker.member import NO_LANE
from elastream.engines.spark.worker.processor import Processor

LOOK_SECONDS = 0.5
ONLY_LANE = frozenset({0})


class Entrance(Processor):
    """Acts for one operator inside a chain."""

    def step(self) -> float:
        """Let a unit in, if nobody else does; the lane is held only while something waits."""
        if self.hold(ONLY_LANE) and not (self.take_and_process() and self.lanes.more):
            self.leave()
        return LOOK_SECONDS

    def leave(self) -> None:
        """Release the lane, for whichever replica is the first then."""
        self.lanes.hold(NO_LANE)


class Entrances:
    """The ways into one replica's chain.

    Args:
        operators: Those of the chain, without the first.
        lanes: Where lengths are looked up.
        open_entrance: Opens the entrance of one of them, until the stack is closed.
    """

    def __init__(
        self,
        operators: Sequence[str],
        lanes: Lanes,
        open_entrance: Callable[[str, ExitStack], Entrance],
    ) -> None:
        self._operators = operators
        self._lanes = lanes
        self._open = open_entrance
        self._opened: dict[str, Entrance] = {}
        self._looked = -LOOK_SECONDS
        self._close = ExitStack()

    def __enter__(self) -> Entrances:
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()

    def visit(self, is_first: bool) -> bool:
        """Let a unit of what waits in; whether there is more.

        Args:
            is_first: Whether the replica is the one that has to look.
        """
        now = monotonic()
        if now - self._looked < LOOK_SECONDS:
            return False
        if not is_first:
            self._looked = now
            return False
        waiting = [name for name in self._operators if any(self._lanes.lengths(name).values())]
        for name in waiting:
            if name not in self._opened:
                self._opened[name] = self._open(name, self._close)
            self._opened[name].step()
        if not waiting:
            self._looked = now
        return bool(waiting)
