"""The template of a message: the message without what differs from event to event."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

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
