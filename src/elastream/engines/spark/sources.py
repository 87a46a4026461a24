"""From what a user gives for a source to what feeds it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from elastream.engines.spark.dataframes.feeds import DataFrameSource
from elastream.engines.spark.driver.batches import BatchSource
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.errors import InvalidInputError

EventSource = TraceSource | DataFrameSource | BatchSource


def source_of(name: str, given: Any) -> EventSource:
    """A streaming DataFrame, a replayed trace, one batch, or an iterable of batches, as a source.

    >>> source_of("orders", [[{"id": 1}], [{"id": 2}]]).batches
    [[{'id': 1}], [{'id': 2}]]
    """
    if isinstance(given, TraceSource | DataFrameSource | BatchSource):
        return given
    if isinstance(given, DataFrame):
        return DataFrameSource(given)
    if isinstance(given, pa.Table | pa.RecordBatch) or type(given).__module__.startswith("pandas"):
        return BatchSource([given])
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | dict):
        return BatchSource(given)
    hint = (
        "it makes events, and elastream.replay(make, 'spiky') says how many in each second"
        if callable(given)
        else "it can be a streaming DataFrame, an iterable of batches, or elastream.replay(...)"
    )
    raise InvalidInputError(f"the source {name!r} is {type(given).__name__}: {hint}")
