"""Events made in advance, a block at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps

import pyarrow as pa

from elastream.errors import InvalidInputError

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
