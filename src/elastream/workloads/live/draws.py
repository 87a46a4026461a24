"""Chance that depends on nothing but an event's number, for whole batches at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.core.hashing import Hashes, mix

_GOLDEN = 0x9E3779B97F4A7C15
"""The step of SplitMix64: it keeps neighbouring numbers apart before they are mixed."""


@dataclass(frozen=True, slots=True)
class Draws:
    """One draw per number and aspect: the same number always gets the same.

    >>> batch, inside = numbered(0, 10), numbered(4, 3)
    >>> bool((batch.below("size", 100)[4:7] == inside.below("size", 100)).all())
    True
    """

    numbers: Hashes

    def hashes(self, aspect: str) -> Hashes:
        """64 even bits per number; those of different aspects have nothing to do with another."""
        salt = np.uint64(crc32(aspect.encode()) * _GOLDEN % 2**64)
        return mix(self.numbers * np.uint64(_GOLDEN) + salt)

    def uniform(self, aspect: str) -> NDArray[np.float64]:
        """Numbers in [0, 1)."""
        return (self.hashes(aspect) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, aspect: str, bound: int) -> NDArray[np.int64]:
        """Whole numbers from 0 to just below the bound."""
        return (self.hashes(aspect) % np.uint64(bound)).astype(np.int64)

    def weighted(self, aspect: str, weights: Sequence[float]) -> NDArray[np.int64]:
        """Places in `weights`, each as often as it weighs."""
        limits = np.cumsum(weights)
        places: NDArray[np.int64] = np.searchsorted(
            limits, self.uniform(aspect) * limits[-1], side="right"
        )
        return places

    def one_of(self, aspect: str, texts: pa.Array) -> pa.Array:
        """One of the texts for every number."""
        return texts.take(pa.array(self.below(aspect, len(texts))))


def numbered(first: int, count: int) -> Draws:
    """The draws of the events first .. first + count - 1."""
    return Draws(np.arange(first, first + count, dtype=np.uint64))


def texts_of(numbers: NDArray[np.int64]) -> pa.Array:
    """Numbers as texts."""
    return pa.array(numbers).cast(pa.string())
