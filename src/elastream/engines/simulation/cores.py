"""Processor cores that the replicas of all operators share.

Replicas are dealt out to cores in turn, one pool after the other. When the replicas on
a core are busy for more time than there is, all on it slow down alike. How busy they were is taken
from the stretch before, so stretches must be short compared with what you want to see.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from elastream.core.topology import Topology

Floats = NDArray[np.float64]


class Cores:
    """Who runs where, and how fast.

    >>> from elastream import Pipeline
    >>> pipeline = Pipeline()
    >>> _ = pipeline.add(len, name="a", after=pipeline.source("in"), pool=4)
    >>> cores = Cores(pipeline.topology(), count=2)
    >>> cores.of("a")
    (0, 1, 0, 1)
    >>> cores.speeds({"a": np.array([1.0, 0.2, 1.0, 0.0])})["a"]
    array([0.5, 1. , 0.5, 1. ])
    """

    def __init__(self, topology: Topology, count: int | None) -> None:
        self._count = count
        self._of: dict[str, NDArray[np.intp]] = {}
        before = 0
        for operator in topology.operators:
            self._of[operator.name] = before + np.arange(operator.pool)
            before += operator.pool

    @property
    def shared(self) -> bool:
        """Whether the number of cores is limited; else each replica has its own."""
        return self._count is not None

    def of(self, operator: str) -> tuple[int, ...] | None:
        """The core of every replica of the pool."""
        return None if self._count is None else tuple((self._of[operator] % self._count).tolist())

    def speeds(self, busy: Mapping[str, Floats]) -> dict[str, Floats]:
        """How fast every replica is, if each wants to be busy for that part of the time."""
        assert self._count is not None, "each replica has a core of its own"
        wanted = np.zeros(self._count)
        for name, of in busy.items():
            np.add.at(wanted, self._of[name] % self._count, of)
        speed = 1 / np.maximum(wanted, 1.0)
        return {name: speed[self._of[name] % self._count] for name in busy}
