"""Inputs of one simple shape: what a control engineer would try first. They are not random."""

from __future__ import annotations

import numpy as np

from elastream.workloads.traces import Trace, evenly

LOW, HIGH, SECONDS = 1000.0, 4000.0, 600


def step(seed: int = 0) -> Trace:
    """One jump from low to high, half way through."""
    return evenly(np.where(np.arange(SECONDS) < SECONDS // 2, LOW, HIGH))


def square(seed: int = 0) -> Trace:
    """Low and high in turn, a minute each."""
    return evenly(np.where(np.arange(SECONDS) // 60 % 2 == 0, LOW, HIGH))


def ramp(seed: int = 0) -> Trace:
    """A steady rise from low to high."""
    return evenly(np.linspace(LOW, HIGH, SECONDS))
