"""Outputs of a function for successors that it names.

A function may return or yield `("alert", rows)`: these rows go to the successor `alert` alone,
whatever its edge says. What it puts out without a name takes the edges as they were declared.
Events for the same successor keep their order among those with a name, and among those without.

Outputs for different successors may have different columns, and their order matters. Between the
function and the router they are therefore one table with one column of structs for each successor:
a row has a value in the column of the one that it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MARK = b"elastream.named"
_EVERYBODY = ""
"""The column of what has no name: no successor is called so."""


class Named(NamedTuple):
    """What is for one successor."""

    successor: str | None
    """None for what takes the edges as they were declared."""
    places: NDArray[np.intp]
    """Where its rows are among all that was put out."""
    table: pa.Table


def packed(parts: Sequence[tuple[str | None, pa.Table]]) -> pa.Table:
    """All parts as one table, in their order; as they are if none has a name.

    >>> alerts, others = pa.table({"text": ["hot"]}), pa.table({"n": [1, 2]})
    >>> [(name, table.to_pydict()) for name, _, table in
    ...  unpacked(packed([("alert", alerts), (None, others)]))]
    [('alert', {'text': ['hot']}), (None, {'n': [1, 2]})]
    """
    filled = [(name, table) for name, table in parts if table.num_rows]
    if all(name is None for name, _ in filled):
        return joined([table for _, table in filled])
    names = list(dict.fromkeys(name or _EVERYBODY for name, _ in filled))
    whole = {
        name: pa.chunked_array(
            joined([part for given, part in filled if (given or _EVERYBODY) == name])
            .combine_chunks()
            .to_struct_array()
        )
        for name in names
    }
    owner = np.repeat(
        [names.index(name or _EVERYBODY) for name, _ in filled],
        [table.num_rows for _, table in filled],
    )
    columns = {}
    for number, name in enumerate(names):
        mine = owner == number
        # Where a row is for somebody else, nothing is taken.
        place = pa.array(np.cumsum(mine) - 1, mask=~mine)
        columns[name] = whole[name].take(place)
    return pa.table(columns).replace_schema_metadata({_MARK: b"yes"})


def unpacked(table: pa.Table) -> list[Named] | None:
    """The parts of what `packed` made; None for any other table."""
    if _MARK not in (table.schema.metadata or {}):
        return None
    parts = []
    for name in table.column_names:
        column = table.column(name)
        places = np.flatnonzero(np.asarray(pc.is_valid(column)))
        mine = column.take(pa.array(places)).combine_chunks()
        rows = pa.Table.from_struct_array(mine)
        parts.append(Named(name or None, places.astype(np.intp), rows))
    return parts


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of all that have events."""
    filled = [table for table in tables if table.num_rows]
    return pa.concat_tables(filled, promote_options="permissive") if filled else pa.table({})
