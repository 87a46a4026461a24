"""What the simulation asks of the queue, or queues, of one operator."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elastream.core.stats import OperatorStats
from elastream.engines.simulation.curves import FifoCurves, Grid, ReplicaCurves

Floats = NDArray[np.float64]


class Queue(Protocol):
    """Events that wait for an operator, and the replicas that take them.

    After `begin` either `free` and `commit` do all steps at once, or, after `begin_steps`, `room`
    and `step` do them one by one; then `curves` tells what happened.
    """

    waiting: float
    """Events that wait for the operator or are in it."""
    capacity: Floats
    """The most that can be processed in every step."""

    def begin(self, grid: Grid, active: NDArray[np.int64], speeds: Floats, producers: int) -> None:
        """Prepare for the steps of a grid.

        Args:
            grid: The steps.
            active: How many replicas are active in each.
            speeds: How fast every replica of the pool is; 1 takes the execution time.
            producers: How many members send events to the operator.
        """

    def free(self, inflow: Floats) -> Floats | None:
        """What is processed in every step if this comes and nothing binds; None if something does.

        Nothing happens before `commit`.
        """

    def commit(self) -> None:
        """Let happen what `free` has found."""

    def begin_steps(self) -> None:
        """Prepare for single steps, because something binds."""

    def room(self, step: int, limit: float) -> float:
        """How many events it can take in this step, if it may process `limit` of them."""

    def step(self, step: int, inflow: float, limit: float) -> float:
        """Take in and process events, at most `limit`; returns how many were processed."""

    def curves(self) -> FifoCurves | ReplicaCurves:
        """What happened in the steps since `begin`."""

    def busy(self) -> Floats:
        """The part of the last grid's time for which every replica of the pool was busy."""

    def end_interval(self, duration: float) -> None:
        """An interval of the control loop has ended."""

    def collect(self, active: int, duration: float, selectivity: float) -> OperatorStats:
        """The statistics since the last call."""
