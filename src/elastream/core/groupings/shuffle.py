"""`shuffle`: round robin over the active replicas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from elastream.core.groupings.base import Batch, Grouping, Routing, checked_active, in_turn


@dataclass(frozen=True)
class Shuffle(Grouping[int]):
    """Every active replica gets the same number of events. The state is whose turn it is.

    >>> Shuffle().route(0, Batch(5), active=[0, 1, 3]).replicas
    array([0, 1, 3, 0, 1])
    """

    name = "shuffle"

    def start(self, pool: int, producer: int = 0) -> int:
        """The replica with the producer's number has the first turn."""
        return producer

    def route(self, state: int, batch: Batch, active: ArrayLike) -> Routing[int]:
        """Go round."""
        replicas = checked_active(active)
        turn = (state + batch.count) % len(replicas)
        return Routing(in_turn(replicas, state, batch.count), turn)

    def route_one(self, state: int, active: Sequence[int]) -> tuple[int, int]:
        """Whose turn it is; without arrays, which cost more than all the rest."""
        if not active:
            return super().route_one(state, active)  # It says what is wrong.
        turn = state % len(active)
        return active[turn], (turn + 1) % len(active)
