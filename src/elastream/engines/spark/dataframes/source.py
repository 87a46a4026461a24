"""A source that a streaming DataFrame feeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from elastream.errors import InvalidInputError


@dataclass(frozen=True)
class DataFrameSource:
    """The events of a streaming DataFrame: each once, even when the driver dies."""

    frame: DataFrame
    trigger: Mapping[str, Any] = field(default_factory=dict)
    """When Spark looks for new events, as in `DataStreamWriter.trigger`; always, unless given."""

    def __post_init__(self) -> None:
        if not self.frame.isStreaming:
            raise InvalidInputError(
                "the DataFrame of a source must be a streaming one: make it with spark.readStream"
            )

    @property
    def columns(self) -> list[str]:
        """What its events have."""
        return list(self.frame.columns)
