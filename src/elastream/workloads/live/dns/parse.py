"""From the line of a packet capture to its fields."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from elastream.errors import InvalidInputError

_QUERY = (
    r"^IP (?P<client>\d+\.\d+\.\d+\.\d+)\.\d+ > (?P<resolver>\d+\.\d+\.\d+\.\d+)\.53: "
    r"\d+[+%]* (?P<type>[A-Z]+)\? (?P<name>\S+)\. \((?P<size>\d+)\)$"
)


def parse_queries(batch: pa.Table) -> pa.Table:
    """Put `client`, `resolver`, `type`, `name` and `size` in the place of `packet`."""
    packets = batch["packet"].combine_chunks()
    fields = pc.extract_regex(packets, _QUERY)
    if fields.null_count:
        unreadable = packets.filter(pc.is_null(fields))[0]
        raise InvalidInputError(
            f"the packet {unreadable.as_py()!r} is no DNS query: it must read "
            "'IP <client>.<port> > <resolver>.53: <id>+ <type>? <name>. (<bytes>)'"
        )
    parsed = batch.drop_columns(["packet"])
    for name in ("client", "resolver", "type"):
        parsed = parsed.append_column(name, fields.field(name))
    # Names differ in nothing but meaning to spell: resolvers may vary the case at random.
    parsed = parsed.append_column("name", pc.utf8_lower(fields.field("name")))
    return parsed.append_column("size", pc.cast(fields.field("size"), pa.int64()))
