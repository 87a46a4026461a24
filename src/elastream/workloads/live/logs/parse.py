"""From a line to its fields."""

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
