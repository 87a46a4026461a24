"""What generators are made of: chance, texts, and blocks of events.

Chance depends on nothing but an event's number. Texts come from templates. Both work on whole
batches, and events are made a block at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from string import Formatter
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastream.core.hashing import Hashes, mix
from elastream.errors import InvalidInputError

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
        """64 random bits per number; those of different aspects are independent of each other."""
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


class Phrases:
    """Templates with named fields; every event picks a template and brings the fields' values.

    >>> phrases = Phrases(["{user} logged in", "disk {disk} of {user} is full"])
    >>> fields = {"user": pa.array(["ann", "bob"]), "disk": pa.array(["sda", "sdb"])}
    >>> phrases.fill(np.array([0, 1]), fields).to_pylist()
    ['ann logged in', 'disk sdb of bob is full']
    """

    def __init__(self, templates: Sequence[str]) -> None:
        parts = [
            [(literal, field) for literal, field, _, _ in Formatter().parse(template)]
            for template in templates
        ]
        self._fields = sorted({field for part in parts for _, field in part if field})
        # A template is literal, field, literal, field, ...: the short ones end with nothing.
        longest = max(len(part) for part in parts)
        padded = [part + [("", None)] * (longest - len(part)) for part in parts]
        codes = {field: code for code, field in enumerate(self._fields, start=1)}
        self._literals = [pa.array([part[k][0] for part in padded]) for k in range(longest)]
        self._codes = [
            np.array([codes.get(part[k][1] or "", 0) for part in padded]) for k in range(longest)
        ]

    def fill(self, which: NDArray[np.int64], fields: Mapping[str, pa.Array]) -> pa.Array:
        """One text per event: template number `which`, with the event's own values."""
        values = [fields[field] for field in self._fields]
        pieces = []
        for literals, codes in zip(self._literals, self._codes, strict=True):
            pieces.append(literals.take(pa.array(which)))
            pieces.append(pc.choose(pa.array(codes[which]), "", *values))
        return pc.binary_join_element_wise(*pieces, "")


BLOCK = 2_048

Generator = Callable[[int, int], pa.Table]
"""`make(first, count)`: the events with the numbers first .. first + count - 1."""


def in_blocks(make: Generator) -> Generator:
    """The same events, made in whole blocks of which callers get slices.

    A source asks for a few events many times a second, and making a few takes hardly less than
    making many.
    """
    block_of = lru_cache(maxsize=2)(lambda number: make(number * BLOCK, BLOCK))

    @wraps(make)
    def from_blocks(first: int, count: int) -> pa.Table:
        if first < 0 or count < 0:
            raise InvalidInputError(f"first={first}, count={count}: both must be 0 or more")
        last = max(first + count - 1, first)
        blocks = range(first // BLOCK, last // BLOCK + 1)
        whole = pa.concat_tables([block_of(number) for number in blocks])
        return whole.slice(first - blocks[0] * BLOCK, count)

    return from_blocks
