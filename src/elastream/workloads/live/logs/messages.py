"""The messages that generated log lines carry: how often each comes, and its template."""

from __future__ import annotations

import pyarrow as pa

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
