"""Events as they travel: Arrow IPC streams.

Batches are small and many, and most of what Arrow's own writer and reader of streams cost is the
schema, which is the same again and again. So a stream is put together from its messages, and a
schema that was seen before is not read again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_PREFIX = 8
"""A message begins with a continuation mark and the length of what follows, four bytes each."""
_END = b"\xff\xff\xff\xff\0\0\0\0"


class _Newest(threading.local):
    """The last stream that was read: often it is passed on as it is, and need not be written."""

    table: pa.Table | None = None
    data = b""


_newest = _Newest()


def to_bytes(table: pa.Table) -> bytes:
    """The table as a stream of at most one record batch."""
    if table is _newest.table:
        return _newest.data
    schema = table.schema.serialize().to_pybytes()
    if _plain(schema) is None:
        return _written(table)
    batches = table.to_batches()
    if len(batches) > 1:
        batches = table.combine_chunks().to_batches()
    return b"".join([schema, *[batch.serialize() for batch in batches], _END])


def from_bytes(data: bytes, chosen: NDArray[np.intp] | None = None) -> pa.Table:
    """The table in a stream that `to_bytes` made, without copying it.

    Args:
        data: The stream.
        chosen: The places of the rows that are wanted, ascending; all of them unless given. Rows
            that follow each other are not copied, either.
    """
    table = _read(data)
    if chosen is None:
        _newest.table, _newest.data = table, data
        return table
    if len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1:
        return table.slice(chosen[0], len(chosen))
    return table.take(chosen)


def _read(data: bytes) -> pa.Table:
    start = _PREFIX + int.from_bytes(data[4:_PREFIX], "little")
    schema = _plain(data[:start])
    if schema is None:
        return pa.ipc.open_stream(data).read_all()
    if len(data) == start + len(_END):
        return schema.empty_table()
    batch = pa.ipc.read_record_batch(pa.py_buffer(data).slice(start), schema)
    return pa.Table.from_batches([batch])


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


@lru_cache(maxsize=256)
def _plain(message: bytes) -> pa.Schema | None:
    """The schema in a message; None if it has dictionaries, which are separate messages."""
    schema = pa.ipc.read_schema(pa.py_buffer(message))
    return None if _any_dictionary(schema.types) else schema


def _any_dictionary(types: Iterable[pa.DataType]) -> bool:
    return any(
        pa.types.is_dictionary(kind)
        or (isinstance(kind, pa.BaseExtensionType) and _any_dictionary([kind.storage_type]))
        or _any_dictionary(kind.field(i).type for i in range(kind.num_fields))
        for kind in types
    )
