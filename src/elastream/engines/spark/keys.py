"""The keys of events, whatever type their column has.

A key's lane must depend on the key alone: not on what is beside it in a batch, nor on how Arrow
happens to store it. Numbers, texts and bytes are hashed as they are. A point in time counts its
nanoseconds. Lists, structs and maps become one number each, made of the hashes of what is in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.core.hashing import Hashes, fingerprints, mix
from elastream.errors import InvalidInputError, described

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9
_NULL = np.uint64(0x9E3779B97F4A7C15)


def key_values(column: pa.ChunkedArray) -> Any:
    """A column of keys as `fingerprints` takes them."""
    if not column.num_chunks:
        return []
    return _values(column.chunk(0) if column.num_chunks == 1 else _one_array(column))


def check_keys(column: pa.ChunkedArray, name: str) -> None:
    """Find out whether these keys can be hashed, while their events can still be set aside.

    Args:
        column: The keys.
        name: What the column is called.

    Raises:
        InvalidInputError: They cannot.
    """
    kind = column.type
    if not _always_hashes(kind):
        try:
            fingerprints(key_values(column))
        except Exception as error:  # Arrow and Python refuse values in many ways.
            raise InvalidInputError(
                f"a key in the column {name!r}, of the type {kind}, cannot be hashed: "
                f"{described(error)}"
            ) from None


def _always_hashes(kind: pa.DataType) -> bool:
    """Whether no value of this type needs a closer look."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or _is_text(kind)
        or pa.types.is_binary(kind)
        or _ticks_of(kind)
    )


def _values(array: pa.Array) -> Any:
    """The values of one array, as `fingerprints` takes them."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _values(array.storage)
    if pa.types.is_dictionary(kind):
        return _values(array.dictionary.take(array.indices))
    if pa.types.is_run_end_encoded(kind):
        return _values(pc.run_end_decode(array))
    if pa.types.is_struct(kind):
        return _of_structs(array)
    if pa.types.is_map(kind):
        pair = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return _of_lists(array.cast(pa.list_(pair)))
    if _is_list(kind):
        return _of_lists(array)
    if _is_text(kind):
        # The same hash as that of the text, but what is no UTF-8 has one, too.
        array = array.cast(pa.large_binary())
    elif ticks := _ticks_of(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        # Modulo 2^64: a date may be too far away to count its nanoseconds.
        array = pc.multiply(array.view(whole).cast(pa.int64()), ticks)
    number = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    if number and not array.null_count:
        return array.to_numpy(zero_copy_only=False)
    return array.to_pylist()


def _of_structs(array: pa.Array) -> Hashes:
    """One number per struct; the order in which its fields were declared does not matter."""
    codes = np.zeros(len(array), np.uint64)
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    for name, values in sorted(zip(names, array.flatten(), strict=True), key=lambda of: of[0]):
        codes = mix(codes ^ fingerprints([name])) ^ fingerprints(_values(values))
    return _with_nulls(codes, array)


def _of_lists(array: pa.Array) -> Hashes:
    """One number per list, by its values and their places."""
    if len(array) == array.null_count:
        return np.full(len(array), _NULL)
    values = fingerprints(_values(pc.list_flatten(array)))
    lists = pc.list_parent_indices(array).to_numpy()
    places = np.arange(len(lists)) - np.searchsorted(lists, lists)
    codes = np.zeros(len(array), np.uint64)
    np.add.at(codes, lists, mix(values + mix(places.astype(np.uint64) + np.uint64(1))))
    return _with_nulls(codes, array)


def _with_nulls(codes: Hashes, array: pa.Array) -> Hashes:
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, _NULL, codes)


def _ticks_of(kind: pa.DataType) -> int:
    """How many nanoseconds a date, a time or a duration counts in; 0 for any other type."""
    if pa.types.is_date32(kind):
        return _DAY
    if pa.types.is_date64(kind):
        return _NANOSECONDS["ms"]
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return _NANOSECONDS[kind.unit]
    return 0


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """All chunks in one; dictionaries, which may differ from chunk to chunk, are looked up."""
    if pa.types.is_dictionary(column.type):
        return pa.concat_arrays([each.dictionary.take(each.indices) for each in column.chunks])
    return pa.concat_arrays(column.chunks)
