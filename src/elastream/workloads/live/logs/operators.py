"""The operators of the log application: parse lines, find their templates, rate their severity.

A template is a message without what differs from event to event. Severity goes by the level, else
by the status, else by what the message says.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

FORMATS = {
    "syslog": r"^(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>\S+) "
    r"(?P<component>[^\s\[:]+)(?:\[\d+\])?: (?P<message>.*)$",
    "hdfs": r"^(?P<time>\d{6} \d{6}) \d+ (?P<level>[A-Z]+) (?P<component>[^\s:]+): "
    r"(?P<message>.*)$",
    "web": r"^(?P<host>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "
    r'"(?P<message>[^"]*)" (?P<status>\d{3}) .*$',
}
FIELDS = ("time", "host", "component", "level", "status", "message")


def parse_lines(batch: pa.Table) -> pa.Table:
    """Put `format` and the fields in the place of `line`.

    What a format does not have stays empty. A line of no known format is all message.
    """
    lines = batch["line"].combine_chunks()
    found = {name: pc.extract_regex(lines, pattern) for name, pattern in FORMATS.items()}
    matches = pc.make_struct(*(pc.is_valid(fields) for fields in found.values()))
    parsed = batch.drop_columns(["line"]).append_column(
        "format", pc.case_when(matches, *found, "unknown")
    )
    for name in FIELDS:
        values = [
            # `struct_field` knows that nothing was found, and `field` does not.
            pc.struct_field(fields, name)
            for fields in found.values()
            if fields.type.get_field_index(name) >= 0
        ]
        if name == "message":
            values.append(lines)
        parsed = parsed.append_column(name, pc.coalesce(*values))
    return parsed


MASKS = (
    # The order matters: a number is also part of all the others.
    (r"\bblk_-?\d+", "<block>"),
    (r"/?\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?", "<address>"),
    (r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>"),
    (r"\bHTTP/\d(?:\.\d)?\b", "HTTP/<version>"),
    (r"\b\d+\b", "<number>"),
    (r"\bfor \S+ from <address>", "for <user> from <address>"),
    (r"\bof user [\w-]+", "of user <user>"),
    (r"^\([\w-]+\) CMD", "(<user>) CMD"),
)


def find_templates(batch: pa.Table) -> pa.Table:
    """Add `template`."""
    return batch.append_column("template", templates_of(batch["message"]))


def templates_of(messages: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The templates of messages.

    >>> templates_of(pa.array(["blk_-17 from /10.0.0.7:50010 took 3 ms"])).to_pylist()
    ['<block> from <address> took <number> ms']
    """
    for pattern, mask in MASKS:
        messages = pc.replace_substring_regex(messages, pattern, mask)
    return messages


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
