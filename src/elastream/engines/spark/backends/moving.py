"""What becomes of events that wait when the lanes of their operator change.

Events that somebody has begun to work on are a unit with a name. A function may have used the name
and the positions of the events as a key for what it wrote elsewhere (`elastream.Context`), so
both must stay the same. A unit whose events all go to the same lane moves as it is. If keys send
them to several lanes, no lane has the whole unit: it is split wherever two neighbours part, and
every part has the name of the unit and says where in it it begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.core.lanes import lanes_of_keys
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.parcels import Unit
from elastream.engines.spark.keys import key_values


class Piece(NamedTuple):
    """Events that are stored together in their new lanes."""

    first: int
    """How many of those that waited together come before them."""
    lane_of: NDArray[np.intp]
    """The lane of each; the same for all events of a unit."""
    unit: Unit | None

    @property
    def events(self) -> int:
        """How many there are."""
        return len(self.lane_of)


def new_lanes(table: pa.Table, lane: int, wanted: OperatorLanes) -> NDArray[np.intp]:
    """Where events belong: into the lanes of their keys, or else all where those of a lane go."""
    if wanted.key is None or wanted.key not in table.column_names:
        return np.full(table.num_rows, wanted.fitting(lane))
    return lanes_of_keys(key_values(table.column(wanted.key)), wanted.lanes)


def pieces(lane_of: NDArray[np.intp], unit: Unit | None) -> Iterator[Piece]:
    """The unit that events begin with, or its parts, and then the others.

    >>> unit = Unit("6f1c", first=0, events=3, attempt=1)
    >>> [(piece.first, piece.events, piece.unit.at) for piece in pieces(np.array([2, 2, 2]), unit)]
    [(0, 3, None)]
    >>> [(piece.first, piece.events, piece.unit.at) for piece in pieces(np.array([2, 2, 5]), unit)]
    [(0, 2, 0), (2, 1, 2)]
    """
    begun = unit.events if unit else 0
    if unit:
        ends = [*(np.flatnonzero(np.diff(lane_of[:begun])) + 1).tolist(), begun]
        for first, end in pairwise([0, *ends]):
            at = unit.at if len(ends) == 1 else (unit.at or 0) + first
            part = unit._replace(first=0, events=end - first, at=at)
            yield Piece(first, lane_of[first:end], part)
    if begun < len(lane_of):
        yield Piece(begun, lane_of[begun:], None)
