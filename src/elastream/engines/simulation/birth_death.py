"""Memoryless replicas in steps that are not much longer than an execution time.

With n events and c replicas, events are completed at the rate min(n, c)/et. Completions are drawn
as if all c were busy, and each counts with probability n/c while fewer are (uniformisation).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def birth_death(
    present: float,
    inflow: Floats,
    completions: Floats,
    servers: NDArray[np.int64],
    random: np.random.Generator,
) -> Floats:
    """How many events there are after every step.

    Which of a step's arrivals and completions came first is not known. They take turns from one
    step to the next, so that the errors of the two orders cancel.

    Args:
        present: Events that are there before the first step.
        inflow: Events that arrive in every step.
        completions: Completions in every step, if all replicas were busy.
        servers: Active replicas in every step.
        random: Decides which completions count.
    """
    draws = iter(random.random(int(completions.sum())).tolist())
    counts: list[float] = []
    first = True
    for new, done, active in zip(
        inflow.tolist(), completions.tolist(), servers.tolist(), strict=True
    ):
        if first:
            present += new
        while done > 0:
            done -= 1
            if next(draws) * active < present:
                present = present - 1 if present > 1 else 0.0
        if not first:
            present += new
        first = not first
        counts.append(present)
    return np.array(counts)
