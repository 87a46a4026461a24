"""Events as an operator's function wants them.

Between operators, events are Arrow tables. A function gets what the annotation of its first
parameter asks for: a `pyarrow.Table` (also without an annotation), a `pandas.DataFrame`, or a
`list` of rows, each a dictionary. It may return any of the three, or None for no events.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.engines.spark.births import Births
from elastream.errors import InvalidInputError

Convert = Callable[[pa.Table], Any]


class Events(NamedTuple):
    """A table, and when each of its events arrived at its source."""

    table: pa.Table
    births: Births

    def cut(self, start: int, count: int) -> Events:
        """Some events in a row."""
        return Events(self.table.slice(start, count), self.births.cut(start, count))

    def chosen(self, places: NDArray[np.intp]) -> Events:
        """The events at these places."""
        if len(places) == self.table.num_rows:
            return self
        return Events(self.table.take(places), self.births.chosen(places))


def together(parts: Sequence[Events]) -> list[Events]:
    """All events in one table, unless their columns do not go together; then they stay apart."""
    if len(parts) < 2:
        return list(parts)
    try:
        table = pa.concat_tables([part.table for part in parts], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return list(parts)
    return [Events(table, Births.joined(part.births for part in parts))]


def input_of(function: Callable[..., Any]) -> Convert:
    """How to make, from a table, what the function's first parameter asks for."""
    wanted = _annotation(function)
    if wanted in (pa.Table, None, Any):
        return lambda table: table
    origin = get_origin(wanted) or wanted
    if origin is list:
        return lambda table: table.to_pylist()
    if getattr(origin, "__module__", "").startswith("pandas") and origin.__name__ == "DataFrame":
        return lambda table: table.to_pandas()
    label = getattr(function, "__name__", repr(function))
    raise InvalidInputError(
        f"the function {label!r} asks for {wanted!r}: it can have a pyarrow.Table, "
        "a pandas.DataFrame or a list of rows"
    )


def to_table(output: Any) -> pa.Table:
    """What a function returned, as a table."""
    if isinstance(output, pa.Table):
        return output
    if output is None:
        return pa.table({})
    if isinstance(output, pa.RecordBatch):
        return pa.Table.from_batches([output])
    if isinstance(output, list):
        return _of_rows(output)
    if type(output).__module__.startswith("pandas"):
        return pa.Table.from_pandas(output, preserve_index=False)
    raise InvalidInputError(
        f"an operator returned {type(output).__name__}: it can return a pyarrow.Table, "
        "a pandas.DataFrame, a list of rows, or None"
    )


def _of_rows(rows: list[Any]) -> pa.Table:
    """All columns that any row has; a row that lacks one has a null there."""
    for row in rows:
        if not isinstance(row, dict):
            raise InvalidInputError(
                f"an operator returned a list with {type(row).__name__} in it: "
                "each row must be a dictionary of column names and values"
            )
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _annotation(function: Callable[..., Any]) -> Any:
    try:
        names = list(inspect.signature(function).parameters)
        return get_type_hints(function).get(names[0]) if names else None
    except (TypeError, ValueError, NameError):
        # Built-in and half-imported functions say nothing about themselves.
        return None
