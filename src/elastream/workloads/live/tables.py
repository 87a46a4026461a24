"""The tables that the applications store into, one for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_INTEGER, _REAL, _TEXT, _BOOLEAN = "BIGINT", "DOUBLE PRECISION", "TEXT", "BOOLEAN"


@dataclass(frozen=True, slots=True)
class StoreTable:
    """A table with an `id`: an event that has been stored is not stored again."""

    name: str
    columns: Mapping[str, str]
    """SQL types, in words that SQLite and PostgreSQL share; the columns of a batch, by name."""


TWEETS = StoreTable(
    "tweets",
    {
        "id": _INTEGER,
        "user": _TEXT,
        "text": _TEXT,
        "content": _TEXT,
        "sentiment": _REAL,
        "mood": _TEXT,
        "user_class": _TEXT,
    },
)

NEWS_AND_OPINIONS = StoreTable(
    "news_and_opinions",
    {
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
    },
)

QUERIES = StoreTable(
    "dns_queries",
    {
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
    },
)

LINES = StoreTable(
    "log_lines",
    {
        "id": _INTEGER,
        "format": _TEXT,
        "time": _TEXT,
        "host": _TEXT,
        "component": _TEXT,
        "severity": _TEXT,
        "template": _TEXT,
        "message": _TEXT,
    },
)
