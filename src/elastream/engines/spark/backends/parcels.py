"""Events on their way: as a producer sends them, and as a member takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elastream.core.groupings.base import SyncRequest
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.births import Births


@dataclass(frozen=True, slots=True)
class Requests:
    """What a producer asks of a replica, along with events."""

    producer: MemberName
    asked: tuple[SyncRequest, ...]


class Parcel(NamedTuple):
    """Events on their way to an operator, as a producer sends them.

    They may be for several lanes: then `lane_of` has one number per event; they are stored once.
    """

    operator: str
    lane: int
    events: int
    births: Births
    data: bytes
    """The events, as an Arrow IPC stream."""
    lane_of: NDArray[np.uint16] | None = None
    requests: Requests | None = None

    @classmethod
    def for_lanes(
        cls, operator: str, lane_of: NDArray[np.intp], births: Births, data: bytes
    ) -> Parcel:
        """Events, each of which has a lane."""
        first, events = int(lane_of[0]), len(lane_of)
        several = None if (lane_of == first).all() else lane_of.astype(np.uint16)
        return cls(operator, first, events, births, data, several)


class Place(NamedTuple):
    """Some events of one lane, as they were taken."""

    number: int
    """Given by the backend; a higher one came later."""
    lane: int
    events: int
    whole: bool
    """Whether nothing of it is left in the lane."""
    parcel: int | None = None
    """The number of the parcel that it is a part of, if it is."""


class Unit(NamedTuple):
    """The name of a unit of work, which never changes, whichever replica takes it."""

    name: str
    """No other unit of any state has it."""
    first: int
    """How many events of its stored batch come before it."""
    events: int
    attempt: int
    """How often it was taken."""
    at: int | None = None
    """Where it begins in the unit that it is a part of; None if it is whole: see `moving`."""


class Taken(NamedTuple):
    """Events that a member works on. They stay in their lanes until they are committed."""

    data: bytes
    events: int
    births: Births
    places: tuple[Place, ...]
    chosen: NDArray[np.intp] | None = None
    """Which rows of the data they are; all unless given."""
    requests: Requests | None = None
    deaths: int = 0
    """How many processes have died while it was next in its lane: it may be the cause."""
    unit: Unit | None = None
    """Its name, if one was asked for."""
