"""`osg`, the replica: sketches what values cost, and answers the scheduler (DABS-Storm 5.2).

A replica is in one of two states (figure 7b): START, until it has a snapshot of its costs, and
STABILIZING, until two snapshots in a row agree; then it reports and starts again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.groupings.base import Indices, SketchReport, SyncReply, SyncRequest
from elastream.core.sketches import CountMin, HashFamily

Floats = NDArray[np.float64]

WINDOW = 128
"""The paper leaves N to the user. A short window ends the blind round robin at the start sooner."""
TOLERANCE = 0.05


@dataclass(frozen=True)
class OsgReplica:
    """The sketches of one replica, after all that it has executed so far."""

    replica: int
    frequency: CountMin
    """Φ: how often each value came."""
    time: CountMin
    """Ω: how much execution time each value took, in seconds."""
    window: int = WINDOW
    """N: how many events lie between two looks at the sketches."""
    tolerance: float = TOLERANCE
    """µ: the relative error up to which two snapshots agree."""
    snapshot: Floats | None = None
    """Ψ: mean execution times, one per cell. None in START, set in STABILIZING."""
    in_window: int = 0
    work: float = 0.0
    """C: execution time of all events so far, in seconds."""

    @classmethod
    def start(
        cls, replica: int, family: HashFamily, window: int = WINDOW, tolerance: float = TOLERANCE
    ) -> OsgReplica:
        """A replica that has executed nothing."""
        empty = CountMin.empty(family)
        return cls(replica, empty, empty, window, tolerance)

    def execute(
        self, keys: ArrayLike, times: ArrayLike, requests: Iterable[SyncRequest] = ()
    ) -> tuple[OsgReplica, tuple[SketchReport | SyncReply, ...]]:
        """Record the events of a batch; returns the next state and the feedback for the scheduler.

        Args:
            keys: The key of every event that this replica executed.
            times: How long each took, in seconds.
            requests: The requests that came along; positions count this replica's events.
        """
        seconds = np.asarray(times, dtype=np.float64)
        done = self.work + np.cumsum(seconds)
        replies = tuple(
            SyncReply(
                self.replica,
                request.round_number,
                float(done[request.position]) - request.estimate,
            )
            for request in requests
        )
        cells = self.frequency.family.cells(keys)
        state, reports = self, []
        for part in _parts(len(seconds), self.window - self.in_window, self.window):
            state = replace(
                state,
                frequency=state.frequency.add_at(cells[:, part]),
                time=state.time.add_at(cells[:, part], seconds[part]),
                in_window=state.in_window + part.stop - part.start,
                work=float(done[part.stop - 1]),
            )
            if state.in_window == state.window:
                state, report = state._look()
                reports += [report] if report else []
        return state, (*replies, *reports)

    def _look(self) -> tuple[OsgReplica, SketchReport | None]:
        """The end of a window: report if the costs have settled, else take a new snapshot."""
        costs = cell_costs(self.frequency.table, self.time.table)
        if self.snapshot is None or relative_error(self.snapshot, costs) > self.tolerance:
            return replace(self, snapshot=costs, in_window=0), None
        report = SketchReport(self.replica, self.frequency.table, self.time.table)
        empty = CountMin.empty(self.frequency.family)
        return replace(self, frequency=empty, time=empty, snapshot=None, in_window=0), report


def cell_costs(frequency: Floats, time: Floats) -> Floats:
    """Ω/Φ: the mean execution time of a cell, 0 where nothing came."""
    return np.divide(time, frequency, out=np.zeros_like(time), where=frequency > 0)


def sketched_costs(
    family: HashFamily,
    all_frequency: Floats,
    all_time: Floats,
    known: NDArray[np.bool_],
    active: Indices,
    keys: ArrayLike,
) -> Floats:
    """Ω/Φ of every key at its least used cell, on every active replica: (replicas, events)."""
    pooled = all_frequency.sum(axis=0), all_time.sum(axis=0)
    frequency = np.where(known[:, np.newaxis], all_frequency[active], pooled[0])
    time = np.where(known[:, np.newaxis], all_time[active], pooled[1])
    mean = time.sum(axis=1, keepdims=True) / frequency.sum(axis=1, keepdims=True)
    ratio = np.divide(time, frequency, out=np.tile(mean, frequency.shape[1]), where=frequency > 0)
    cells = family.cells(keys)
    costs: Floats = ratio[:, cells[0]]
    least = frequency[:, cells[0]]
    for row in cells[1:]:
        used = frequency[:, row]
        better = used < least
        costs = np.where(better, ratio[:, row], costs)
        least = np.where(better, used, least)
    return costs


def relative_error(snapshot: Floats, costs: Floats) -> float:
    """η = Σ|Ψ - Ω/Φ| / ΣΨ (DABS-Storm equation 14); 0 when nothing costs anything.

    >>> relative_error(np.array([[1.0, 3.0]]), np.array([[1.0, 2.0]]))
    0.25
    """
    difference = float(np.abs(snapshot - costs).sum())
    total = float(snapshot.sum())
    if total == 0:
        return 0.0 if difference == 0 else np.inf
    return difference / total


def _parts(count: int, first: int, window: int) -> Iterable[slice]:
    """Slices of `count` events that end where windows end; `first` are left of this one."""
    ends = [*range(first, count, window), count]
    starts = [0, *ends[:-1]]
    return (slice(a, b) for a, b in zip(starts, ends, strict=True) if b > a)
