"""How bad an event is: by its level, else by its status, else by what the message says."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_CRITICAL = r"(?i)\b(?:panic|fatal|out of memory|corrupt(?:ed)?)\b"
_ERROR = r"(?i)\b(?:error|failed|failure|exception|cannot|denied|reset)\b"
_WARNING = r"(?i)\b(?:warn|warning|slow|retry|timeout|deprecated)\b"


def rate_severity(batch: pa.Table) -> pa.Table:
    """Add `severity`: critical, error, warning, info or debug."""
    level, status, message = batch["level"], batch["status"], batch["message"]
    rules = (
        (_is(level, "FATAL"), "critical"),
        (_is(level, "ERROR"), "error"),
        (_is(level, "WARN", "WARNING"), "warning"),
        (_is(level, "DEBUG", "TRACE"), "debug"),
        (pc.is_valid(level), "info"),
        (_holds(pc.starts_with(status, "5")), "error"),
        (_holds(pc.starts_with(status, "4")), "warning"),
        (pc.is_valid(status), "info"),
        (_holds(pc.match_substring_regex(message, _CRITICAL)), "critical"),
        (_holds(pc.match_substring_regex(message, _ERROR)), "error"),
        (_holds(pc.match_substring_regex(message, _WARNING)), "warning"),
    )
    conditions = pc.make_struct(*(condition for condition, _ in rules))
    severities = pc.case_when(conditions, *(severity for _, severity in rules), "info")
    return batch.append_column("severity", severities)


def _is(levels: pa.ChunkedArray, *names: str) -> pa.ChunkedArray:
    return pc.is_in(levels, value_set=pa.array(names))


def _holds(condition: pa.ChunkedArray) -> pa.ChunkedArray:
    """What is not known does not hold."""
    return pc.fill_null(condition, False)
