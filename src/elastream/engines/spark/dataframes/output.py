"""An operator's output as a streaming DataFrame, fitted to its schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

# Spark compares what a Python data source gives with this very schema; nothing public makes it.
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.outbox import Outbox
from elastream.errors import EngineError

Offset = dict[str, int]
"""The number of a batch; it is called a ticket in the checkpoints that queries resume from."""


class Output(DataSource):
    """The data source; its options are the state and the operator."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "elastream-output"

    def streamReader(self, schema: StructType) -> OutputReader:  # noqa: N802 - Spark's name
        """One reader per query."""
        return OutputReader(self.options["state"], self.options["operator"], schema)


class OutputReader(DataSourceStreamReader):
    """Offsets are numbers of batches in the outbox."""

    def __init__(self, state: str, operator: str, schema: StructType) -> None:
        self._state = state
        self._operator = operator
        self._schema = schema

    def initialOffset(self) -> Offset:  # noqa: N802
        """A new query begins with what nobody has consumed."""
        return {"ticket": self._outbox.consumed()}

    def latestOffset(self, start: Offset, limit: Any = None) -> Offset:  # noqa: N802
        """All there is; Spark asks when it is done with everything up to `start`.

        It calls `commit` only when there is something new to read. There would never be, if
        producers waited for room that nobody makes.
        """
        newest = self._outbox.newest()
        self._check(start, newest)
        self._outbox.consume(start["ticket"])
        return {"ticket": newest}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One, so that events stay in their order."""
        self._check(start)
        between = start["ticket"], end["ticket"]
        return [InputPartition(between)] if between[0] < between[1] else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches as the schema wants them."""
        schema = arrow_schema(self._schema)
        with closing(open_backend(self._state).outbox(self._operator)) as outbox:
            for data in outbox.read(*partition.value):
                yield from fitted(from_bytes(data), schema, self._operator).to_batches()

    def commit(self, end: Offset) -> None:
        """Make room."""
        self._outbox.consume(end["ticket"])

    def stop(self) -> None:
        """Close the outbox."""
        self._outbox.close()

    @cached_property
    def _outbox(self) -> Outbox:
        """Opened in the process that asks for offsets, not before the reader travels to another."""
        return open_backend(self._state).outbox(self._operator)

    def _check(self, start: Offset, newest: int | None = None) -> None:
        """An error unless it is here that the query goes on; to ask for the newest is to write."""
        consumed, ticket = self._outbox.consumed(), start["ticket"]
        if consumed == ticket:
            return
        if newest is None:
            newest = self._outbox.newest()
        if consumed > ticket:
            raise EngineError(
                f"another query has read the output of {self._operator!r} up to batch {consumed}, "
                f"and this one is at batch {ticket}: only one query can read an output; "
                "write to several sinks with foreachBatch, or start this one with a new "
                "checkpoint to continue from there"
            )
        if ticket > newest:
            # To go on would take the next batches for those that were read.
            raise EngineError(
                f"the checkpoint of the query that reads the output of {self._operator!r} is at "
                f"batch {ticket}, and there are only {newest} in this state: they belong to "
                "different runs; give the run the state= of the checkpoint, or the query a new "
                "checkpoint"
            )


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
