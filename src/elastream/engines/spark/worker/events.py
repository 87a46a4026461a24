"""Events in the form that an operator's function asks for.

Between operators, events are Arrow tables. A function gets what the annotation of its first
parameter asks for: a `pyarrow.Table` (also without an annotation), a `pandas.DataFrame`, a `list`
of rows, each a dictionary, or one row after the other (`dict`). It may return any of these, or None
for no events; what a generator yields is put out together. `("alert", rows)` is for the successor
`alert` alone.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastream.engines.spark.births import Births
from elastream.engines.spark.worker.named_outputs import packed
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
    """All events in one table, unless their columns do not match; then they stay separate."""
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


def unchanged(table: pa.Table) -> pa.Table:
    """For functions that ask for a table."""
    return table


def input_of(function: Callable[..., Any]) -> Convert:
    """How to make, from a table, what the function's first parameter asks for."""
    label = getattr(function, "__name__", repr(function))
    if _declared(function) == []:
        what = "has no __call__ that" if isinstance(function, type) else "has no parameter that"
        raise InvalidInputError(f"{label!r} {what} takes events: its first parameter gets them")
    wanted = _annotation(function)
    if wanted in (pa.Table, None, Any):
        return unchanged
    origin = get_origin(wanted) or wanted
    if origin in (list, dict):
        return lambda table: table.to_pylist()
    if _is_pandas_frame(origin):
        return lambda table: table.to_pandas()
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
    if isinstance(output, pa.Table):  # The usual case, and the only one that many ever see.
        return output
    if isinstance(output, Iterator):
        return packed([_part(part, operator) for part in output])
    if _is_named(output):
        return packed([_part(output, operator)])
    if isinstance(output, list) and any(_is_named(row) for row in output):
        runs = groupby(output, lambda row: row[0] if _is_named(row) else None)
        return packed([_of_run(name, list(rows), operator) for name, rows in runs])
    return _table_of(output, operator)


def rows_of(output: Any, operator: str) -> list[Any]:
    """What a function returned for one row, as rows, or as pairs of a successor and a row."""
    if output is None:
        return []
    if isinstance(output, dict) or _is_named(output):
        return [output]
    if isinstance(output, list | Iterator):
        return list(output)
    raise InvalidInputError(
        f"{_who(operator)} returned {type(output).__name__} for a row, but must return "
        f"a row (dict), a list of rows, or None{_hint(output)}"
    )


def _table_of(output: Any, operator: str | None) -> pa.Table:
    """What has no name for a successor in it."""
    if isinstance(output, pa.Table):
        return output
    if output is None:
        return pa.table({})
    if isinstance(output, pa.RecordBatch):
        return pa.Table.from_batches([output])
    if isinstance(output, list):
        return _of_rows(output, operator)
    if _is_pandas_frame(type(output)):
        try:
            return pa.Table.from_pandas(output, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidInputError(
                f"{_who(operator)} returned a pandas.DataFrame that Arrow cannot hold: {error}"
            ) from None
    raise InvalidInputError(
        f"{_who(operator)} returned {type(output).__name__}, but must return a pyarrow.Table, "
        f"a pandas.DataFrame, a list of rows, or None{_hint(output)}"
    )


def _hint(output: Any) -> str:
    """A hint at what the function probably meant to return."""
    if isinstance(output, dict):
        return ": a dictionary is one row, so take rows one by one (row: dict), or return [row]"
    if isinstance(output, tuple):
        return ": a pair names a successor and what is for it, as in ('alert', rows)"
    if type(output).__module__.startswith("pandas"):
        return ": a Series is a column, so return a DataFrame that has it"
    if isinstance(output, AsyncIterator):
        return ": an async function cannot yield, so collect a list and return it"
    return ""


def _part(part: Any, operator: str | None) -> tuple[str | None, pa.Table]:
    """Something that a generator yields: it may also be a single row, or have a name."""
    name, content = part if _is_named(part) else (None, part)
    return name, _table_of([content] if isinstance(content, dict) else content, operator)


def _of_run(name: str | None, rows: list[Any], operator: str | None) -> tuple[str | None, pa.Table]:
    """Rows in a row that are for the same successor."""
    if name is None:
        return None, _of_rows(rows, operator)
    parts = [_part(row, operator)[1] for row in rows]
    return name, packed([(None, table) for table in parts])


def _is_named(output: Any) -> bool:
    """Whether it is a successor's name, and what is for it."""
    return isinstance(output, tuple) and len(output) == 2 and isinstance(output[0], str)


def _of_rows(rows: list[Any], operator: str | None) -> pa.Table:
    """All columns that any row has; a row that lacks one has a null there."""
    for row in rows:
        if not isinstance(row, dict):
            raise InvalidInputError(
                f"{_who(operator)} returned a list with {type(row).__name__} in it, but "
                "each row must be a dictionary of column names and values"
            )
    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        return pa.table({name: [row.get(name) for row in rows] for name in names})
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        raise _misfit(rows, names, operator) from None


def _misfit(rows: list[Any], names: list[Any], operator: str | None) -> InvalidInputError:
    """Which column no table can hold, and why."""
    for name in names:
        if not isinstance(name, str):
            return InvalidInputError(
                f"{_who(operator)} returned a row with a column named {name!r}, but column "
                "names must be text"
            )
        values = [row.get(name) for row in rows]
        try:
            pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            kinds = sorted({type(value).__name__ for value in values if value is not None})
            came = " and ".join(kinds)
            wanted = "every row needs the same type there" if len(kinds) > 1 else str(error)
            return InvalidInputError(
                f"{_who(operator)} returned {came} in the column {name!r}: {wanted}"
            )
    return InvalidInputError(f"{_who(operator)} returned rows that do not form a table")


def _who(operator: str | None) -> str:
    return "a source" if operator is None else f"the operator {operator!r}"


def _is_pandas_frame(kind: Any) -> bool:
    """Without importing pandas where nobody uses it."""
    return getattr(kind, "__module__", "").startswith("pandas") and kind.__name__ == "DataFrame"


def is_callable_class(kind: Any) -> bool:
    """Whether it is a class whose objects are called, one made for every replica."""
    return isinstance(kind, type) and inspect.isfunction(kind.__call__)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """What it is called with; of an object or its class, what its `__call__` is.

    Annotations that are written as text are looked up, one by one: a function that was sent to
    another process has only those names of its module with it that its code uses. What cannot be
    found stays text.
    """
    names = getattr(inspect.unwrap(_called(function)), "__globals__", {})
    found = _declared(function) or []
    return [each.replace(annotation=_looked_up(each.annotation, names)) for each in found]


def _declared(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Its parameters as they are written; None if it is built in and says nothing about them."""
    called = _called(function)
    try:
        found = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        return None
    return found if called is function else found[1:]


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    kind = function if isinstance(function, type) else type(function)
    called: Callable[..., Any] = kind.__call__ if is_callable_class(kind) else function
    return called


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
    """Of the first parameter; what cannot be looked up goes by the last part of its name."""
    for parameter in parameters_of(function)[:1]:
        wanted = parameter.annotation
        return _by_last_name(wanted) if isinstance(wanted, str) else wanted
    return None


def _by_last_name(text: str) -> Any:
    """What `dict[str, Any]` or `pd.DataFrame` means where nobody knows `Any` or `pd`.

    >>> _by_last_name("dict[str, Any]"), _by_last_name("arrow.Table").__name__
    (<class 'dict'>, 'Table')
    """
    last = text.partition("[")[0].rpartition(".")[2].strip()
    if last == "DataFrame":
        return import_module("pandas").DataFrame
    return {"dict": dict, "Dict": dict, "list": list, "List": list, "Table": pa.Table}.get(last)
