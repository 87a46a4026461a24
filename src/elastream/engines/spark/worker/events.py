"""Events as an operator's function wants them.

Between operators, events are Arrow tables. A function gets what the annotation of its first
parameter asks for: a `pyarrow.Table` (also without an annotation), a `pandas.DataFrame`, a `list`
of rows, each a dictionary, or one row after the other (`dict`). It may return any of these, or None
for no events; what a generator yields is put out together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
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


def takes_rows(function: Callable[..., Any]) -> bool:
    """Whether the function's first parameter asks for one row.

    >>> def price(row: dict): ...
    >>> takes_rows(price), takes_rows(len)
    (True, False)
    """
    wanted = _annotation(function)
    return (get_origin(wanted) or wanted) is dict


def input_of(function: Callable[..., Any]) -> Convert:
    """How to make, from a table, what the function's first parameter asks for."""
    wanted = _annotation(function)
    if wanted in (pa.Table, None, Any):
        return lambda table: table
    origin = get_origin(wanted) or wanted
    if origin in (list, dict):
        return lambda table: table.to_pylist()
    if getattr(origin, "__module__", "").startswith("pandas") and origin.__name__ == "DataFrame":
        return lambda table: table.to_pandas()
    label = getattr(function, "__name__", repr(function))
    raise InvalidInputError(
        f"the function {label!r} asks for {wanted!r}: it can have a pyarrow.Table, "
        "a pandas.DataFrame, a list of rows, or one row (dict)"
    )


def to_table(output: Any, operator: str | None = None) -> pa.Table:
    """What a function returned, as a table.

    Args:
        output: What it is.
        operator: Whose function it was; none for what a source gives.
    """
    if isinstance(output, pa.Table):
        return output
    if output is None:
        return pa.table({})
    if isinstance(output, pa.RecordBatch):
        return pa.Table.from_batches([output])
    if isinstance(output, list):
        return _of_rows(output, operator)
    if isinstance(output, Iterator):
        return _joined([to_table(_listed(part), operator) for part in output])
    if type(output).__module__.startswith("pandas"):
        return pa.Table.from_pandas(output, preserve_index=False)
    hint = (
        ": a dictionary is one row, so take rows one by one (row: dict), or return [row]"
        if isinstance(output, dict)
        else ""
    )
    raise InvalidInputError(
        f"{_who(operator)} returned {type(output).__name__}, and can return a pyarrow.Table, "
        f"a pandas.DataFrame, a list of rows, or None{hint}"
    )


def rows_of(output: Any, operator: str) -> list[Any]:
    """What a function returned for one row, as rows."""
    if output is None:
        return []
    if isinstance(output, dict):
        return [output]
    if isinstance(output, list | Iterator):
        return list(output)
    raise InvalidInputError(
        f"{_who(operator)} returned {type(output).__name__} for a row, and can return "
        "a row (dict), a list of rows, or None"
    )


def _of_rows(rows: list[Any], operator: str | None) -> pa.Table:
    """All columns that any row has; a row that lacks one has a null there."""
    for row in rows:
        if not isinstance(row, dict):
            raise InvalidInputError(
                f"{_who(operator)} returned a list with {type(row).__name__} in it, and "
                "each row must be a dictionary of column names and values"
            )
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _who(operator: str | None) -> str:
    return "a source" if operator is None else f"the operator {operator!r}"


def _listed(part: Any) -> Any:
    """What a generator yields may also be a single row."""
    return [part] if isinstance(part, dict) else part


def _joined(tables: list[pa.Table]) -> pa.Table:
    """One table of all that have events."""
    filled = [table for table in tables if table.num_rows]
    return pa.concat_tables(filled, promote_options="permissive") if filled else pa.table({})


def is_callable_class(kind: Any) -> bool:
    """Whether it is a class whose objects are called, one made for every replica."""
    return isinstance(kind, type) and inspect.isfunction(kind.__call__)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """What it is called with; of an object or its class, what its `__call__` is.

    Annotations that are written as text are looked up, one by one: a function that was sent to
    another process has only those names of its module with it that its code uses. What cannot be
    found stays text.
    """
    kind = function if isinstance(function, type) else type(function)
    called, itself = (kind.__call__, 1) if is_callable_class(kind) else (function, 0)
    try:
        found = list(inspect.signature(called).parameters.values())[itself:]
    except (TypeError, ValueError):
        return []  # Built-in functions say nothing about themselves.
    names = getattr(inspect.unwrap(called), "__globals__", {})
    return [each.replace(annotation=_looked_up(each.annotation, names)) for each in found]


def _looked_up(annotation: Any, names: dict[str, Any]) -> Any:
    if annotation is inspect.Parameter.empty:
        return None
    if not isinstance(annotation, str):
        return annotation
    wanted = type("wanted", (), {"__annotations__": {"it": annotation}})
    try:
        return get_type_hints(wanted, names)["it"]
    except (AttributeError, NameError, SyntaxError, TypeError):
        return annotation


def _annotation(function: Callable[..., Any]) -> Any:
    """Of the first parameter, if it can be found."""
    for parameter in parameters_of(function)[:1]:
        return None if isinstance(parameter.annotation, str) else parameter.annotation
    return None
