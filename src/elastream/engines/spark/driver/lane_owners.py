"""Which replica owns which lane: as few as possible move, and heavy ones weigh as they are seen to.

Producers distribute events evenly over the lanes of an operator without a key, so there lanes only
move with the replicas. A key makes lanes heavy for good: those are weighed by what arrives in them.
"""

from __future__ import annotations

from collections.abc import Mapping

from elastream.core.lanes import Owners, assign, lane_weights
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import LaneState, LaneStates

NOBODY = -1
KEPT = 0.9
"""How much of what a lane weighed is kept at every look: none must move because of a moment."""


class LaneOwners:
    """Assigns the lanes of operators to their active replicas.

    Args:
        layout: The lanes of every operator.
    """

    def __init__(self, layout: Mapping[str, OperatorLanes]) -> None:
        self._layout = layout
        self._before: LaneStates = {}
        self._arriving: dict[str, dict[int, float]] = {}
        """Events per look and lane, smoothed."""

    def learn(self, lanes: LaneStates) -> None:
        """Look how much has arrived in every lane since the last look."""
        for operator, states in lanes.items():
            earlier = self._before.get(operator, {})
            smoothed = self._arriving.setdefault(operator, {})
            for lane, state in states.items():
                arrived = state.arrived - (earlier[lane].arrived if lane in earlier else 0)
                smoothed[lane] = KEPT * smoothed.get(lane, 0.0) + (1 - KEPT) * arrived
        self._before = lanes

    def assigned(
        self,
        operator: str,
        active: tuple[int, ...],
        before: Owners | None,
        states: Mapping[int, LaneState],
    ) -> Owners:
        """The owner of every lane of an operator; nobody owns one that all replicas share."""
        of = self._layout[operator]
        if of.shared:
            return ()
        before = before or (NOBODY,) * of.lanes
        keyed = of.key is not None
        if not keyed and set(before) == set(active):
            return before
        queued = {lane: float(state.waiting) for lane, state in states.items()}
        arriving = self._arriving.get(operator, {})
        return assign(before, active, lane_weights(queued, arriving, of.lanes, keyed))
