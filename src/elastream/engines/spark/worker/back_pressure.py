"""Back-pressure: how much a producer may send before it has to wait for its successors."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence

from elastream.engines.base import WhenFull
from elastream.engines.spark.backends.lanes import Lanes
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.options import Options

PARTS = 8
"""A producer uses up one part in this many of the room in a queue before it looks again."""
LEAST_PARTS = 10
"""If there is any room at all, it may use up one part in this many of a whole queue."""
LANE_SHARE = 0.25
"""A lane may hold at most this share of what its operator may have waiting."""


class BackPressure:
    """How full a producer's successors are: the last count, plus what it has sent since.

    Args:
        lanes: Where lengths are looked up.
        targets: The successors.
        keyed: Those whose lanes a key chooses: there, one full lane is enough to wait.
        outputs: The lanes of the own output, where somebody reads it.
        options: How long queues may be, and what to do when they are full.
        seed: Producers with different seeds do not all choose the same lanes.
    """

    def __init__(
        self,
        lanes: Lanes,
        targets: Sequence[str],
        keyed: Iterable[str],
        outputs: Sequence[str],
        options: Options,
        seed: str,
    ) -> None:
        self._lanes = lanes
        self._targets = targets
        self._keyed = frozenset(keyed)
        self._bound = options.queue_size
        self.drops = options.on_full is WhenFull.DROP
        """Whether events that find no room are dropped, instead of waiting."""
        blocking = [] if self.drops else list(targets)
        self._waited_for = [*blocking, *outputs]
        self._lengths: dict[str, dict[int, int]] = {}
        self._free = 0.0
        """How many events may leave before lanes are looked at again."""
        self._random = random.Random(seed)

    def look_again(self) -> None:
        """Answer the next question from new counts."""
        self._free = 0.0

    def is_open(self) -> bool:
        """Whether events may leave: no queue that blocks is full."""
        if self._free <= 0:
            names = {*self._targets, *self._waited_for}
            self._lengths = {name: dict(self._lanes.lengths(name)) for name in names}
            # Others fill the lanes, too: look again when a part of the room is used up.
            self._free = min(map(self.room, self._waited_for), default=self._bound) / PARTS
        return self._free > 0

    @property
    def allowance(self) -> int:
        """How many events may leave at once: what has room wherever it is waited for.

        Not less than a part of what a queue may hold: where queues are full, batches would be cut
        into ever smaller ones, and each costs as much as a large one.
        """
        least = max(self._bound // LEAST_PARTS, 1)
        return max(int(self._free), least) if self._waited_for else sys.maxsize

    def room(self, target: str) -> float:
        """How many more events may wait for a successor."""
        lengths = self._lengths.get(target, {})
        room: float = self._bound - sum(lengths.values())
        if target in self._keyed:
            room = min(room, self._bound * LANE_SHARE - max(lengths.values(), default=0))
        return room

    def refuses(self, target: str) -> bool:
        """Whether to drop events for a successor, where they may be dropped."""
        self._lengths[target] = dict(self._lanes.lengths(target))
        return self.room(target) <= 0

    def is_busy(self, replica: MemberName) -> bool:
        """Whether a replica of a successor has anything to do at the moment."""
        return self._lanes.busy(replica)

    def lane(self, target: str, candidates: Sequence[int], lanes: int) -> int:
        """One lane of a replica: the shorter of two that are drawn at random.

        The shortest of all would be everybody's choice at the same time. Full lanes are left out as
        long as there is any other, also of another replica.
        """
        lengths = self._lengths.get(target, {})
        count, draw = len(candidates), self._random.random
        one, other = candidates[int(draw() * count)], candidates[int(draw() * count)]
        chosen = one if lengths.get(one, 0) <= lengths.get(other, 0) else other
        full = self._bound * LANE_SHARE
        if lengths.get(chosen, 0) < full:
            return chosen
        everywhere = range(lanes)
        for some in (candidates, everywhere):
            fitting = [lane for lane in some if lengths.get(lane, 0) < full]
            if fitting:
                return self._random.choice(fitting)
        return chosen

    def sent(self, parcels: Iterable[Parcel]) -> None:
        """Count what leaves."""
        for parcel in parcels:
            self._free -= parcel.events
            if parcel.lane_of is None:
                lengths = self._lengths.setdefault(parcel.operator, {})
                lengths[parcel.lane] = lengths.get(parcel.lane, 0) + parcel.events
