"""What happens, as server-sent events: every listener gets all of them, in order.

Events are numbered. A client that lost the connection names the last one it got, and receives those
that followed; if they are no longer kept, a `reset` says so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import orjson

KEPT = 1_200
HEARTBEAT_SECONDS = 15.0
PAUSE_SECONDS = 0.1
"""Events within this many seconds are sent together, which costs little more than one."""
HEARTBEAT = b": still here\n\n"


def event(kind: str, content: Any) -> bytes:
    """One event, as it travels."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(content))


RESET = event("reset", {})


@dataclass(eq=False)
class _Listener:
    """Someone who waits on an event loop."""

    wake: Callable[[], object]
    client: str
    called: bool = False


@dataclass(eq=False)
class Feed:
    """Takes events from any thread; passes them to listeners on an event loop."""

    last: int = 0
    """The number of the newest event. A later feed must start above an earlier one."""
    _kept: deque[bytes] = field(default_factory=lambda: deque(maxlen=KEPT))
    _listeners: set[_Listener] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)
    _closed: bool = False

    def publish(self, kind: str, content: Any) -> None:
        """Tell everyone."""
        told = event(kind, content)
        with self._lock:
            self.last += 1
            self._kept.append(b"id: %d\n%s" % (self.last, told))
            self._wake_all()

    def close(self) -> None:
        """End all streams, after they got what is there."""
        with self._lock:
            self._closed = True
            self._wake_all()

    def listeners(self, client: str | None = None) -> int:
        """How many there are, or how many of this client."""
        with self._lock:
            return sum(client in (None, one.client) for one in self._listeners)

    async def listen(self, seen: int, client: str = "") -> AsyncIterator[bytes]:
        """The events after the one that was seen; parts of a stream of server-sent events."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        listener = _Listener(lambda: loop.call_soon_threadsafe(woken.set), client)
        with self._lock:
            self._listeners.add(listener)
        try:
            while True:
                part, seen, over = self._since(seen, listener)
                if part:
                    yield part
                if over:
                    return
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        await woken.wait()
                except TimeoutError:
                    yield HEARTBEAT
                await asyncio.sleep(PAUSE_SECONDS)
                woken.clear()
        finally:
            with self._lock:
                self._listeners.discard(listener)

    def _since(self, seen: int, listener: _Listener) -> tuple[bytes, int, bool]:
        """What followed that event, the number of the newest, and whether it was the last."""
        with self._lock:
            listener.called = False
            missed = self.last - seen
            part = RESET
            if 0 <= missed <= len(self._kept):
                part = b"".join(list(self._kept)[len(self._kept) - missed :])
            return part, self.last, self._closed

    def _wake_all(self) -> None:
        for listener in self._listeners:
            if not listener.called:
                listener.called = True
                listener.wake()
