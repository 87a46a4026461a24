"""The end of every application: a table that keeps each of its events once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elastream.core.context import Context
from elastream.sinks import Table
from elastream.workloads.applications import Step

_INTEGER, _REAL, _TEXT, _BOOLEAN = "BIGINT", "DOUBLE PRECISION", "TEXT", "BOOLEAN"

TWEETS = {
    "id": _INTEGER,
    "user": _TEXT,
    "text": _TEXT,
    "content": _TEXT,
    "sentiment": _REAL,
    "mood": _TEXT,
    "user_class": _TEXT,
}

NEWS_AND_OPINIONS = {
    "id": _INTEGER,
    "user": _TEXT,
    "verified": _BOOLEAN,
    "text": _TEXT,
    "kind": _TEXT,
    "user_class": _TEXT,
    "reach": _REAL,
    "sentiment": _REAL,
    "mood": _TEXT,
    "emphasis": _REAL,
    "stance": _TEXT,
}

QUERIES = {
    "id": _INTEGER,
    "client": _TEXT,
    "type": _TEXT,
    "name": _TEXT,
    "size": _INTEGER,
    "longest_label": _INTEGER,
    "entropy": _REAL,
    "digit_share": _REAL,
    "score": _REAL,
    "verdict": _TEXT,
}

LINES = {
    "id": _INTEGER,
    "format": _TEXT,
    "time": _TEXT,
    "host": _TEXT,
    "component": _TEXT,
    "severity": _TEXT,
    "template": _TEXT,
    "message": _TEXT,
}


def stored_in(target: str | Path, table: str, columns: Mapping[str, str]) -> Step:
    """Store events in a table of an SQLite file, or of a server (`postgresql://...`)."""
    sink = Table(target, table, key="id", columns=columns)

    def opened() -> Table:
        sink.setup()
        return sink

    def store(rows: list[dict[str, Any]], sink: Table, context: Context) -> list[dict[str, Any]]:
        return sink(rows, context)

    return Step(store, setup=opened, teardown=Table.close)
