"""`pull`: one shared queue per operator, from which a free replica takes the next batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from elastream.core.groupings.base import SHARED_QUEUE, Batch, Grouping, Routing, checked_active


@dataclass(frozen=True)
class Pull(Grouping[None]):
    """Leaves the choice open: no replica is idle while events wait, whatever an event costs.

    >>> Pull().route(None, Batch(3), active=[0, 1]).replicas
    array([-1, -1, -1])
    """

    name = "pull"
    shared_queue = True

    def start(self, pool: int, producer: int = 0) -> None:
        """There is nothing to remember."""

    def route(self, state: None, batch: Batch, active: ArrayLike) -> Routing[None]:
        """Everything waits in the shared queue."""
        checked_active(active)
        return Routing(np.full(batch.count, SHARED_QUEUE, dtype=np.intp), None)
