"""What is kept of a stretch of simulated time, for the steps after the flow itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """A stretch of time, cut into steps."""

    times: Floats
    """The ends of the steps, and before them the start of the first."""
    down: NDArray[np.bool_]
    """In which steps the pipeline restarts."""
    restarts: bool
    """Whether it does so in any."""
    starts: Floats
    """When the steps start."""
    lengths: Floats
    """How long the steps are, in seconds."""

    @classmethod
    def of(cls, times: Floats, down_until: float) -> Grid:
        """The steps between these times, of a pipeline that restarts until then."""
        starts = times[:-1]
        restarts = bool(starts[0] < down_until)
        return cls(times, starts < down_until, restarts, starts, times[1:] - starts)


@dataclass(frozen=True, slots=True)
class FifoCurves:
    """A queue that events leave in the order in which they came.

    The events that have come by a time and those that have gone by it are two curves. The one that
    came as number x leaves when the second curve reaches x: how long it waits is the horizontal
    distance between them.
    """

    times: Floats
    came: Floats
    """Events let in since the start of the simulation, at every time."""
    gone: Floats
    """Events that have left it since, for a replica or lost, at every time."""
    lost: Floats | None
    """In every step, how many were lost from the head of the queue as it began; None: never any."""
    refused: Floats | None
    """In every step, which share of the arriving events was not let in; None: never any."""
    idle: bool
    """Whether no event ever waited."""


@dataclass(frozen=True, slots=True)
class ReplicaCurves:
    """One queue per replica, which works off a second of work in a second.

    So the work that waits when an event comes is the time that it will wait.
    """

    times: Floats
    work: Floats
    """Seconds of work that wait for every replica, at every time: (times, replicas)."""
    routed: Floats
    """In every step, the share of arriving events that each replica got: (steps, replicas)."""
    admitted: Floats
    """In every step, the share of these that was let in: (steps, replicas)."""
    lost: NDArray[np.bool_]
    """The steps that began with all queues lost."""
