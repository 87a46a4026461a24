"""Lines of three kinds of logs, made from their numbers: syslog, HDFS and web servers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastream.workloads.live.generation import Draws, Phrases, in_blocks, numbered, texts_of

SYSLOG = (
    (8, "{time} {host} sshd[{pid}]: Accepted publickey for {user} from {address} port {port} ssh2"),
    (5, "{time} {host} sshd[{pid}]: Failed password for {user} from {address} port {port} ssh2"),
    (9, "{time} {host} CRON[{pid}]: ({user}) CMD (run-parts /etc/cron.hourly)"),
    (4, "{time} {host} kernel: eth0: link up, {number} Mbps, full duplex"),
    (1, "{time} {host} kernel: Out of memory: Killed process {pid} (java), {number} MB"),
    (6, "{time} {host} systemd[1]: Started session {number} of user {user}."),
    (1, "{time} {host} systemd[1]: backup.service: Main process exited, status={number}/FAILURE"),
    (2, "{time} {host} ntpd[{pid}]: warning: clock is {number} ms off, peer {address}"),
)
HDFS = (
    (14, "{time} {pid} INFO dfs.DataNode$DataXceiver: Receiving block blk_{block} "
         "src: /{address}:{port} dest: /{address_too}:50010"),
    (12, "{time} {pid} INFO dfs.DataNode$PacketResponder: Received block blk_{block} "
         "of size {size} from /{address}"),
    (8, "{time} {pid} INFO dfs.FSNamesystem: Added {address}:50010 to blk_{block}, size {size}"),
    (4, "{time} {pid} INFO dfs.DataBlockScanner: Verification succeeded for blk_{block}"),
    (3, "{time} {pid} WARN dfs.DataNode$DataXceiver: {address}:50010: slow read of "
        "blk_{block}, {number} ms"),
    (1, "{time} {pid} ERROR dfs.DataNode: {address}:50010: connection reset while serving "
        "blk_{block} to /{address_too}"),
)  # fmt: skip
WEB = (
    (18, '{address} - - [{time}] "GET {path}/{number} HTTP/1.1" {status} {size} "-" "browser/5.0"'),
    (
        8,
        '{address} - {user} [{time}] "POST {path} HTTP/1.1" {status} {number} "-" "app/2.{number}"',
    ),
    (4, '{address} - - [{time}] "GET /health HTTP/1.1" 200 2 "-" "probe/1.0"'),
)

HOSTS = pa.array(["web-01", "web-02", "db-01", "gateway", "worker-07", "worker-12"])
USERS = pa.array(["root", "deploy", "backup", "www-data", "operator", "guest"])
PATHS = pa.array(["/cart", "/items", "/search", "/api/v1/orders", "/static/img", "/login"])
STATUS = ((80, "200"), (6, "304"), (8, "404"), (3, "403"), (2, "500"), (1, "503"))


START = np.datetime64("2025-03-03T06:00:00", "s").astype(np.int64)
EVENTS_A_SECOND = 1_000
"""How fast the clock in the lines goes."""
_TIMES = (
    (SYSLOG, "%b %e %H:%M:%S"),
    (HDFS, "%y%m%d %H%M%S"),
    (WEB, "%d/%b/%Y:%H:%M:%S +0000"),
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
    status = draws.weighted("status", [weight for weight, _ in STATUS])
    return {
        "address": _addresses(draws, "address"),
        "address_too": _addresses(draws, "address too"),
        "block": texts_of(block),
        "host": draws.one_of("host", HOSTS),
        "number": texts_of(1 + draws.below("number", 900)),
        "path": draws.one_of("path", PATHS),
        "pid": texts_of(100 + draws.below("pid", 32_000)),
        "port": texts_of(1_024 + draws.below("port", 64_000)),
        "size": texts_of(draws.below("size", 67_108_864)),
        "status": pa.array([code for _, code in STATUS]).take(pa.array(status)),
        "user": draws.one_of("user", USERS),
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
