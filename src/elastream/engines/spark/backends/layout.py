"""How the lanes of an operator are laid out."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.core.lanes import lanes_of_keys
from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.keys import key_values


@dataclass(frozen=True, slots=True)
class OperatorLanes:
    """How an operator's events are laid out."""

    lanes: int
    key: str | None = None
    """The column whose hash is the lane, if there is one."""
    shared: bool = False
    """Whether they all wait in the shared lane."""
    chained_to: str | None = None
    """The operator that hands it events without a lane; only what is tried again has one then."""

    def fitting(self, lane: int) -> int:
        """Where the events of a lane belong under a layout that may not have it."""
        return SHARED_LANE if self.shared else lane % self.lanes

    def lane_again(self, letter: DeadLetter) -> int:
        """Where a dead letter is tried again: in its key's lane, or else in that which it had."""
        if self.key is not None and not self.shared:
            table = from_bytes(letter.data)
            if self.key in table.column_names:
                first = table.column(self.key).slice(0, 1)
                return int(lanes_of_keys(key_values(first), self.lanes)[0])
        return self.fitting(letter.lane)
