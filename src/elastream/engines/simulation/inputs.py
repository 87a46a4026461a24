"""What arrives at the sources: a trace as a curve of events over time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from elastream.core.topology import Topology
from elastream.engines.simulation.settings import Arrivals
from elastream.errors import InvalidInputError
from elastream.workloads.traces import Trace

Floats = NDArray[np.float64]


class Input:
    """The events of one source; before and after its trace there are none."""

    def __init__(self, trace: Trace, arrivals: Arrivals, random: np.random.Generator) -> None:
        self._edges = trace.step * np.arange(len(trace.values) + 1)
        self._total = np.concatenate([[0.0], np.cumsum(trace.values)])
        self._at_random = arrivals is Arrivals.POISSON
        self._random = random

    def between(self, times: Floats) -> Floats:
        """How many events arrive between each of these times and the next."""
        total = np.interp(times, self._edges, self._total)
        expected: Floats = np.maximum(total[1:] - total[:-1], 0.0)
        return self._random.poisson(expected).astype(np.float64) if self._at_random else expected


def traces_by_source(topology: Topology, traces: Trace | Mapping[str, Trace]) -> dict[str, Trace]:
    """A trace for every source; a single one is that of the only source."""
    names = [source.name for source in topology.sources]
    if isinstance(traces, Trace):
        if len(names) > 1:
            raise InvalidInputError(
                f"{topology} has the sources {', '.join(names)}: give a trace for each"
            )
        return {names[0]: traces}
    if set(traces) != set(names):
        raise InvalidInputError(
            f"{topology} has the sources {', '.join(names)}, "
            f"and there are traces for {', '.join(traces) or 'none'}: give one for each"
        )
    return {name: traces[name] for name in names}
