"""What members have counted, and what waits for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.backends.members import MemberName

NO_EVENTS: Mapping[str, int] = MappingProxyType({})


class Counts(NamedTuple):
    """What a member did, to be added to its earlier counts."""

    processed: int = 0
    emitted: int = 0
    dropped: int = 0
    busy: float = 0.0
    """Seconds in the operator's function."""
    cpu: float = 0.0
    """Seconds of processor time."""
    sent: Mapping[str, int] = NO_EVENTS
    """Events per successor."""
    lost: Mapping[str, int] = NO_EVENTS
    """Those among them that were dropped because its lanes were full."""
    latency: LatencyHistogram | None = None
    """From the source to here, where events leave the pipeline."""
    saturated: float = 0.0
    """Seconds from one unit of events to the next, while more waited."""
    saturated_events: int = 0
    """Events processed in that time."""
    units: int = 0
    """How many times events were taken and processed; a chain counts as one operator."""
    squares: float = 0.0
    """The time of a unit squared, by its events, over all units: how much execution times vary."""
    chained: Mapping[str, Counts] = NO_EVENTS  # type: ignore[assignment] # it is empty
    """What the operators did that are chained to it; it counts for their replicas of its number."""


class LaneState(NamedTuple):
    """One lane at a glance."""

    arrived: int
    """Events that were ever put into it."""
    waiting: int
    owner: int | None
    """The replica that has taken hold of it; None between two owners."""


LaneStates = Mapping[str, Mapping[int, LaneState]]
"""By operator and lane. A source that a DataFrame feeds has one, too."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Everything counted since the state began, and what waits now."""

    counts: Mapping[MemberName, Counts]
    lanes: LaneStates

    def waiting(self, operator: str) -> int:
        """How many events wait for an operator."""
        return sum(lane.waiting for lane in self.lanes.get(operator, {}).values())


class Ledger(ABC):
    """What members have counted."""

    @abstractmethod
    def totals(self) -> Totals:
        """All counts, and the length of every lane. They need not be of the same moment."""

    @abstractmethod
    def lanes(self) -> LaneStates:
        """The length of every lane alone: there are fewer lanes than there is counted."""

    @abstractmethod
    def counts(self, name: MemberName) -> Counts:
        """What one member has counted; nothing if it never did."""
