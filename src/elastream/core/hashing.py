"""Hashes that are the same in every process, for whole arrays at once."""

from __future__ import annotations

from decimal import Decimal
from struct import pack
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

Hashes = NDArray[np.uint64]

_NOTHING = 0x9E3779B97F4A7C15
"""The code of a missing value: None or NaN."""
_NOT_A_TEXT = 1
"""The start of the checksum of other values, so that a list differs from its text."""
_EXACT = 2.0**53
"""Below this, a whole float stands for exactly one integer."""


def mix(values: Hashes) -> Hashes:
    """Spread the bits of 64-bit values evenly: SplitMix64's finaliser (Steele et al., 2014)."""
    mixed: Hashes = values ^ (values >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def fingerprints(values: ArrayLike) -> Hashes:
    """One hash per value, which depends on that value alone.

    Python's own `hash` will not do: it differs from process to process. The values around it must
    not matter, either: an integer hashes the same in an array of integers, among floats (where
    pandas puts it when one of them is missing), and among objects.

    >>> a, b, c = fingerprints(["spark", "storm", "spark"])
    >>> bool(a == c), bool(a == b)
    (True, False)
    >>> fingerprints([7])[0] == fingerprints([7.0])[0] == fingerprints([7, None])[0]
    np.True_
    """
    array = one_by_one(values)
    if array.dtype.kind in "iub":
        return mix(array.astype(np.uint64))
    if array.dtype.kind == "f":
        return mix(_float_codes(array.astype(np.float64)))
    if array.dtype.kind in "mM":
        return mix(array.view(np.uint64))
    codes = np.fromiter((_code(value) for value in array.tolist()), np.uint64, len(array))
    return mix(codes)


def one_by_one(values: ArrayLike) -> NDArray[np.generic] | NDArray[np.object_]:
    """An array with one element for every value: a list among them stays one.

    >>> one_by_one([[1, 2], [3, 4]]).shape, one_by_one([[1, 2], [3], None]).shape
    ((2,), (3,))
    """
    if isinstance(values, np.ndarray):
        return values if values.ndim == 1 else _objects(values.tolist())
    each: list[object] = list(values)  # type: ignore[arg-type]
    try:
        array = np.asarray(each)
    except (OverflowError, ValueError):  # Lists of different lengths.
        return _objects(each)
    # Among floats, a large integer would lose digits, and texts the zeros at their end.
    return array if array.ndim == 1 and array.dtype.kind in "iubmM" else _objects(each)


def _objects(each: list[object]) -> NDArray[np.object_]:
    return np.fromiter(each, dtype=np.object_, count=len(each))


def _float_codes(array: NDArray[np.float64]) -> Hashes:
    codes: Hashes = array.view(np.uint64).copy()
    with np.errstate(invalid="ignore"):
        whole = (array == np.trunc(array)) & (np.abs(array) < _EXACT)
    codes[whole] = array[whole].astype(np.int64).view(np.uint64)
    codes[np.isnan(array)] = np.uint64(_NOTHING)
    return codes


def _code(value: object) -> int:
    if isinstance(value, str):
        return crc32(value.encode(errors="surrogatepass"))
    if isinstance(value, bytes):
        return crc32(value)
    if value is None:
        return _NOTHING
    if isinstance(value, int):
        return value % 2**64
    if isinstance(value, float):
        return _float_code(value)
    if isinstance(value, Decimal) and value.is_finite():
        numerator, denominator = value.as_integer_ratio()
        if denominator == 1:
            return numerator % 2**64
        value = (numerator, denominator)  # Whatever zeros are at its end.
    return crc32(repr(value).encode(errors="surrogatepass"), _NOT_A_TEXT)


def _float_code(value: float) -> int:
    if value != value:
        return _NOTHING
    if value.is_integer() and abs(value) < _EXACT:
        return int(value) % 2**64
    return int.from_bytes(pack("<d", value), "little")
