"""`key`: events with the same key go to the same replica."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from elastream.core.groupings.base import Batch, Grouping, Routing, checked_active, checked_keys
from elastream.core.hashing import fingerprints, mix


@dataclass(frozen=True)
class Key(Grouping[None]):
    """Every replica draws a number for a key, and the highest wins (rendezvous hashing).

    When a replica is turned on or off, only its own keys move: caches of the others stay warm.

    >>> Key().route(None, Batch.of(["ann", "bob", "ann"]), active=[0, 1, 2]).replicas
    array([2, 0, 2])
    """

    name = "key"
    needs_key = True
    key_is_lane = True

    def start(self, pool: int, producer: int = 0) -> None:
        """There is nothing to remember."""

    def route(self, state: None, batch: Batch, active: ArrayLike) -> Routing[None]:
        """Hash every key against every active replica."""
        replicas = checked_active(active)
        keys = fingerprints(checked_keys(batch, self.name))
        # Keys of the same event are compared across replicas, so each replica hashes differently.
        salts = mix(replicas.astype(np.uint64) + np.uint64(1))
        draws = mix(keys ^ salts[:, np.newaxis])
        return Routing(replicas[draws.argmax(axis=0)], None)
