"""The Count-Min sketch of Cormode and Muthukrishnan, as DABS-Storm section 5.1 uses it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.hashing import fingerprints
from elastream.errors import InvalidInputError

Cells = NDArray[np.intp]
Table = NDArray[np.float64]


@dataclass(frozen=True)
class HashFamily:
    """`rows` two-universal hash functions onto `columns` values, drawn with a `seed`.

    A hash is the upper half of a·x + b modulo 2^64 (multiply-shift, two-universal for 32-bit x),
    scaled to the number of columns. The same seed gives the same functions in every process.
    """

    rows: int
    columns: int
    seed: int = 0

    @classmethod
    def sized(cls, epsilon: float, delta: float, seed: int = 0) -> HashFamily:
        """As precise as asked: ceil(log2(1/δ)) rows by ceil(2.7/ε) columns (DABS-Storm 5.1).

        >>> HashFamily.sized(epsilon=0.70, delta=0.25)
        HashFamily(rows=2, columns=4, seed=0)
        """
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if not 0 < value < 1:
                raise InvalidInputError(f"{name}={value} is not between 0 and 1")
        return cls(math.ceil(math.log2(1 / delta)), math.ceil(2.7 / epsilon), seed)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    def cells(self, values: ArrayLike) -> Cells:
        """The cell of every value in every row, as indices into a flattened table: (rows, n)."""
        multipliers, offsets = self._coefficients
        x = fingerprints(values) >> np.uint64(32)
        hashed = (multipliers * x + offsets) >> np.uint64(32)
        columns = (hashed * np.uint64(self.columns)) >> np.uint64(32)
        return columns.astype(np.intp) + self._row_starts

    @cached_property
    def _coefficients(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        draws = np.random.default_rng(self.seed).integers(
            2**64, size=(2, self.rows, 1), dtype=np.uint64
        )
        return draws[0], draws[1]

    @cached_property
    def _row_starts(self) -> Cells:
        return np.arange(self.rows, dtype=np.intp)[:, np.newaxis] * self.columns


@dataclass(frozen=True)
class CountMin:
    """The sum of each value of a stream, never underestimated, in fixed space.

    After m items, the estimate f̂(e) is at least f(e), and exceeds it by ε·(m - f(e)) or more with a
    probability of at most δ. Sketches of one family can be added: the sum is the sketch of both
    streams.

    >>> sketch = CountMin.empty(HashFamily.sized(epsilon=0.05, delta=0.05))
    >>> sketch.add(["a", "b", "a"]).estimate(["a", "b", "c"])
    array([2., 1., 0.])
    """

    family: HashFamily
    table: Table

    @classmethod
    def empty(cls, family: HashFamily) -> CountMin:
        """A sketch of nothing."""
        return cls(family, np.zeros(family.shape))

    def add(self, values: ArrayLike, amounts: ArrayLike = 1.0) -> CountMin:
        """The sketch after these values, each worth its amount: one, or a non-negative number."""
        return self.add_at(self.family.cells(values), amounts)

    def add_at(self, cells: Cells, amounts: ArrayLike = 1.0) -> CountMin:
        """`add` for values whose cells are known already."""
        weights = np.broadcast_to(np.asarray(amounts, dtype=np.float64), cells.shape)
        added = np.bincount(cells.ravel(), weights.ravel(), minlength=self.table.size)
        return replace(self, table=self.table + added.reshape(self.table.shape))

    def estimate(self, values: ArrayLike) -> NDArray[np.float64]:
        """What each value adds up to: the smallest of its cells."""
        estimates: NDArray[np.float64] = self.table.ravel()[self.family.cells(values)].min(axis=0)
        return estimates
