"""Hashes that are the same in every process, for whole arrays at once."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.errors import InvalidInputError

Hashes = NDArray[np.uint64]

_NOT_A_TEXT = 1
"""Where the checksum of other values starts, so that None is not "None"."""


def mix(values: Hashes) -> Hashes:
    """Spread the bits of 64-bit values evenly: SplitMix64's finaliser (Steele et al., 2014)."""
    mixed: Hashes = values ^ (values >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def fingerprints(values: ArrayLike) -> Hashes:
    """One hash per value: of numbers, dates and texts, and of None.

    Python's own `hash` will not do: it differs from process to process.

    >>> a, b, c = fingerprints(["spark", "storm", "spark"])
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        return mix(array.astype(np.uint64))
    if array.dtype.kind == "f":
        # Adding zero makes -0.0 and 0.0 one value, as they are equal.
        return mix((array.astype(np.float64) + 0.0).view(np.uint64))
    if array.dtype.kind in "mM":
        return mix(array.view(np.uint64))
    codes = np.fromiter((_code(value) for value in array.tolist()), np.uint64, len(array))
    return mix(codes)


def _code(value: object) -> int:
    if isinstance(value, str):
        return crc32(value.encode())
    if isinstance(value, bytes):
        return crc32(value)
    if value is None or isinstance(value, int | float):
        return crc32(repr(value).encode(), _NOT_A_TEXT)
    raise InvalidInputError(f"a key must be a number, a text or a date, not {value!r}")
