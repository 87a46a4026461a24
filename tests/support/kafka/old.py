"""A broker from before topics could be made over the network: it tells what it knows, no more."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

METADATA, API_VERSIONS = 3, 18
KNOWN = {METADATA: (0, 1), API_VERSIONS: (0, 0)}
UNSUPPORTED_VERSION = 35


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while head := self.rfile.read(4):
            request = self.rfile.read(struct.unpack(">i", head)[0])
            kind, version, number = struct.unpack(">hhi", request[:8])
            answer = _versions(version) if kind == API_VERSIONS else self._metadata(version)
            self.wfile.write(struct.pack(">ii", len(answer) + 4, number) + answer)

    def _metadata(self, version: int) -> bytes:
        """This broker alone, and no topics."""
        host, port = self.server.server_address[:2]
        name = str(host).encode()
        one = struct.pack(f">iih{len(name)}si", 1, 1, len(name), name, int(port))
        extra = struct.pack(">h", -1) if version else b""
        controller = struct.pack(">i", 1) if version else b""
        return one + extra + controller + struct.pack(">i", 0)


def _versions(asked: int) -> bytes:
    error = UNSUPPORTED_VERSION if asked > KNOWN[API_VERSIONS][1] else 0
    known = [struct.pack(">hhh", kind, *versions) for kind, versions in KNOWN.items()]
    return struct.pack(">hi", error, len(known)) + b"".join(known)


@contextmanager
def old_broker() -> Iterator[str]:
    """Its address."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
