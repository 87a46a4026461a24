"""An operator's output, fitted to the schema of a DataFrame."""

from __future__ import annotations

import pyarrow as pa

# Spark compares what a Python data source gives with this very schema; nothing public makes it.
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from elastream.errors import EngineError


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema that Spark expects of the batches it is given."""
    made: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return made


def fitted(table: pa.Table, schema: pa.Schema, operator: str) -> pa.Table:
    """The columns of the schema, in its order and types; columns that it does not name are left."""
    return pa.table([_column(table, field, operator) for field in schema], schema=schema)


def _column(table: pa.Table, field: pa.Field, operator: str) -> pa.ChunkedArray:
    place = f"the output of {operator!r} does not fit its schema: column {field.name!r}"
    if field.name not in table.column_names:
        there = ", ".join(table.column_names)
        raise EngineError(f"{place} is not there; there are: {there}")
    column = table.column(field.name)
    if column.null_count and not field.nullable:
        raise EngineError(f"{place} has a null, and must have none")
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EngineError(f"{place} is {column.type}, not {field.type}: {error}") from None
