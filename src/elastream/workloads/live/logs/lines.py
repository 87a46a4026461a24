"""Lines of three kinds of logs, made from their numbers: syslog, HDFS and web servers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastream.workloads.live.blocks import in_blocks
from elastream.workloads.live.draws import Draws, numbered, texts_of
from elastream.workloads.live.logs import messages
from elastream.workloads.live.phrases import Phrases

START = np.datetime64("2025-03-03T06:00:00", "s").astype(np.int64)
EVENTS_A_SECOND = 1_000
"""How fast the clock in the lines goes."""
_TIMES = (
    (messages.SYSLOG, "%b %e %H:%M:%S"),
    (messages.HDFS, "%y%m%d %H%M%S"),
    (messages.WEB, "%d/%b/%Y:%H:%M:%S +0000"),
)
_KINDS = tuple((kind, *message) for kind, (group, _) in enumerate(_TIMES) for message in group)
_FORMAT_OF = np.array([kind for kind, _, _ in _KINDS])
_WEIGHTS = [weight for _, weight, _ in _KINDS]
_PHRASES = Phrases([template for _, _, template in _KINDS])


@in_blocks
def make_lines(first: int, count: int) -> pa.Table:
    """The lines with the numbers first .. first + count - 1."""
    draws = numbered(first, count)
    kinds = draws.weighted("kind", _WEIGHTS)
    fields = _fields(draws) | {"time": _times(draws, _FORMAT_OF[kinds])}
    return pa.table(
        {
            "id": pa.array(draws.numbers.astype(np.int64)),
            "line": _PHRASES.fill(kinds, fields),
        }
    )


def _fields(draws: Draws) -> dict[str, pa.Array]:
    block = draws.hashes("block").view(np.int64)
    status = draws.weighted("status", [weight for weight, _ in messages.STATUS])
    return {
        "address": _addresses(draws, "address"),
        "address_too": _addresses(draws, "address too"),
        "block": texts_of(block),
        "host": draws.one_of("host", messages.HOSTS),
        "number": texts_of(1 + draws.below("number", 900)),
        "path": draws.one_of("path", messages.PATHS),
        "pid": texts_of(100 + draws.below("pid", 32_000)),
        "port": texts_of(1_024 + draws.below("port", 64_000)),
        "size": texts_of(draws.below("size", 67_108_864)),
        "status": pa.array([code for _, code in messages.STATUS]).take(pa.array(status)),
        "user": draws.one_of("user", messages.USERS),
    }


def _addresses(draws: Draws, aspect: str) -> pa.Array:
    numbers = draws.below(aspect, 2**16)
    return pc.binary_join_element_wise(
        "10.20", texts_of(numbers // 256), texts_of(numbers % 256), "."
    )


def _times(draws: Draws, formats: NDArray[np.int64]) -> pa.Array:
    seconds = START + (draws.numbers // np.uint64(EVENTS_A_SECOND)).astype(np.int64)
    # Writing a time is slow, and few different ones occur.
    different, places = np.unique(seconds, return_inverse=True)
    stamps = pa.array(different).cast(pa.timestamp("s"))
    written = [pc.strftime(stamps, format=pattern) for _, pattern in _TIMES]
    return pc.choose(pa.array(formats), *(column.take(pa.array(places)) for column in written))
