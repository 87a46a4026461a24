"""Limits on connections, and on how long a request may take to arrive.

The service lives in the driver of a pipeline, and shares its file descriptors. Connections that say
nothing, or only half of it, must not use them up.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 200
BACKLOG = 64
"""How many are accepted at once; the limit may be exceeded by a few times this for a moment."""
HEADER_SECONDS = 10.0
"""How long a connection has until its request is complete, up to the body."""
_INCOMPLETE = (h11.IDLE, h11.SEND_BODY)
"""What h11 calls a client that has to send something."""


class BoundedHttp(H11Protocol):
    """HTTP/1.1, as uvicorn speaks it, with a time limit for requests and a limit on connections.

    When there are too many, the one that has kept us waiting longest has to go, so that those who
    ask for something are answered whatever the others do.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self.waits_since: float | None = None
        """Since when its request is awaited, with its body; None while one is being answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept it, and close another one if there are too many."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            longest = min(
                (one for one in self.connections if isinstance(one, BoundedHttp)),
                key=lambda one: math.inf if one.waits_since is None else one.waits_since,
            )
            longest.transport.abort()
            # It only leaves by itself a moment later, when the next one may be here.
            self.connections.discard(longest)

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        super().connection_lost(exc)
        self._cancel()

    def _watch(self) -> None:
        """Time passes as long as a request is awaited."""
        if self.conn.their_state not in _INCOMPLETE:
            self.waits_since = None
        elif self.waits_since is None:
            self.waits_since = self.loop.time()
        if self.conn.their_state is not h11.IDLE:
            self._cancel()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _cancel(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
