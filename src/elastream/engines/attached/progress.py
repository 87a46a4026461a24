"""What Spark reports about a batch that has ended: one `StreamingQueryProgress`, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from elastream.errors import InvalidInputError

WHOLE = "triggerExecution"
"""The duration of a whole batch, beside those of its parts."""
FILES = "logOffset"
"""The offset of a source of files."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A batch that has ended."""

    run: str
    """The identifier of the query's run; it changes with every restart."""
    batch: int
    began: float
    """In seconds since 1970."""
    seconds: float
    overhead: float
    """The share of `seconds` in which no task runs: planning, logs, offsets."""
    rows: float
    start: float | None
    """Where the sources stood before, if that can be counted: see `position`."""
    end: float | None
    latest: float | None
    """How far the sources could have been read."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """How long each part of it took, in seconds."""

    @property
    def ended(self) -> float:
        """In seconds since 1970."""
        return self.began + self.seconds

    @classmethod
    def parsed(cls, text: str) -> Progress:
        """From the JSON that Spark gives."""
        try:
            told = json.loads(text)
            durations = told["durationMs"]
            seconds = durations.get(WHOLE, 0) / 1000
            sources = told["sources"]
            return cls(
                run=told["runId"],
                batch=int(told["batchId"]),
                began=datetime.fromisoformat(told["timestamp"]).timestamp(),
                seconds=seconds,
                overhead=max(seconds - durations.get("addBatch", 0) / 1000, 0.0),
                rows=float(told["numInputRows"]),
                start=_positions(sources, "startOffset"),
                end=_positions(sources, "endOffset"),
                latest=_positions(sources, "latestOffset"),
                parts={name: ms / 1000 for name, ms in durations.items() if name != WHOLE},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"no progress of a streaming query: {error!r}") from None


def position(offset: Any) -> float | None:
    """How far a source has come, if its offset is made of numbers alone: their sum.

    Kafka's offsets count records, other sources' count rows or seconds. How many rows one step is,
    batches tell. Those of files count batches, which says nothing about rows.

    >>> position({"orders": {"0": 120, "1": 130}}), position('{"rows": 7}'), position(12)
    (250.0, 7.0, 12.0)
    >>> position({"path": "part-3"}) is position({"logOffset": 3}) is None
    True
    """
    if isinstance(offset, str):
        try:
            return position(json.loads(offset))
        except ValueError:
            return None
    if isinstance(offset, bool):
        return None
    if isinstance(offset, int | float):
        return float(offset)
    if isinstance(offset, Mapping) and FILES not in offset:
        parts = [position(part) for part in offset.values()]
        known = [part for part in parts if part is not None]
        return sum(known) if parts and len(known) == len(parts) else None
    return None


def _positions(sources: list[Mapping[str, Any]], field: str) -> float | None:
    parts = [position(source.get(field)) for source in sources]
    known = [part for part in parts if part is not None]
    return sum(known) if parts and len(known) == len(parts) else None
