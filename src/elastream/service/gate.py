"""Checks on a request before it is read: who asks, how often, how much and how slowly.

These are plain ASGI, outside the framework, so that the body of a stranger is never read and one
that is too large is never held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elastream.service.access import Access, Caller, is_loopback

LARGEST_BODY = 8 * 1024 * 1024
OPEN_PATHS = {"/health", "/health/live", "/health/ready", "/"}
OPEN_FOLDER = "/assets/"
"""The page itself holds no figures."""
READS = {"GET", "HEAD", "OPTIONS"}
SECONDS_AT_ONCE = 6.0
"""A burst may use up the changes of this many seconds."""


class SiteGate:
    """Refuses what another website sends through a browser on this machine."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse with 403 a name that is not this machine's, and changes from another origin."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host, origin = headers.get("host", ""), headers.get("origin")
            if self._access.loopback and not is_loopback(_name(host)):
                # A name of another site that was made to point here.
                await _refuse(
                    403, "this service answers only to the name of its machine", scope, send
                )
                return
            if _is_foreign(origin, host) and scope["method"] not in READS:
                await _refuse(403, "this service accepts no changes from other sites", scope, send)
                return
        await self.app(scope, receive, send)


class TokenGate:
    """Lets a request pass if its token allows it, and notes whose it is.

    Anyone may ask whether the service is up, and load the page; with `open_reads`, anyone may read,
    unless there are tokens for that.
    """

    def __init__(self, app: ASGIApp, access: Access, open_reads: bool) -> None:
        self.app = app
        self._access = access
        self._open_reads = open_reads and not access.readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse with 401 an unknown token, with 403 one that may only read."""
        if scope["type"] == "http":
            caller = self._access.caller(Headers(scope=scope).get("authorization", ""))
            scope["who"] = caller.name if caller else None
            scope["may_read"] = self._open_reads or caller is not None
            refusal = self._refusal(scope, caller)
            if refusal:
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _refusal(self, scope: Scope, caller: Caller | None) -> JSONResponse | None:
        reads, path = scope["method"] in READS, scope["path"]
        if reads and (self._open_reads or path in OPEN_PATHS or path.startswith(OPEN_FOLDER)):
            return None
        if caller is None:
            detail = "this service requires a token: send 'Authorization: Bearer TOKEN'"
            return JSONResponse({"detail": detail}, 401, {"WWW-Authenticate": "Bearer"})
        if not (reads or caller.may_change):
            detail = f"the token of {caller.name!r} may only read"
            scheme = 'Bearer error="insufficient_scope"'
            return JSONResponse({"detail": detail}, 403, {"WWW-Authenticate": scheme})
        return None


class ChangeGate:
    """Limits how many changes of the pipeline pass in a second, and allows short bursts."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.app = app
        self._per_second = access.changes_per_second
        self._most = self._left = SECONDS_AT_ONCE * self._per_second
        self._now = now
        self._last = now()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse with 429 what comes too fast."""
        change = scope["type"] == "http" and scope["method"] not in READS
        if change and scope["path"].startswith("/api/") and not self._take():
            await _refuse(429, "too many changes: wait a second", scope, send, {"Retry-After": "1"})
            return
        await self.app(scope, receive, send)

    def _take(self) -> bool:
        now = self._now()
        self._left = min(self._left + (now - self._last) * self._per_second, self._most)
        self._last = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class BodyGate:
    """Reads a body of at most 8 MiB that arrives in time, and passes it on as a whole."""

    def __init__(self, app: ASGIApp, timeout: float) -> None:
        self.app = app
        self.timeout = timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse with 413 what is too large, with 408 what is too slow."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        try:
            if announced.isdigit() and int(announced) > LARGEST_BODY:
                raise OverflowError
            async with asyncio.timeout(self.timeout):
                body = await _whole_body(receive)
        except OverflowError:
            await _refuse(413, f"the body is larger than {LARGEST_BODY} bytes", scope, send)
        except TimeoutError:
            await _refuse(408, f"the body took longer than {self.timeout:g} s", scope, send)
        else:
            await self.app(scope, _replay(body, receive), send)


async def _whole_body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            raise OverflowError
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _name(host: str) -> str:
    """The name in a Host header, without the port; nothing if it is invalid."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_foreign(origin: str | None, host: str) -> bool:
    """Whether a page of another site sends it; only browsers name an origin."""
    try:
        return origin is not None and urlsplit(origin).netloc != host
    except ValueError:
        return True


async def _refuse(
    status: int, detail: str, scope: Scope, send: Send, headers: dict[str, str] | None = None
) -> None:
    async def nothing_more() -> Message:
        return {"type": "http.disconnect"}

    # The rest of the body stays unread, so the connection cannot be used again.
    refusal = JSONResponse({"detail": detail}, status, {"Connection": "close", **(headers or {})})
    await refusal(scope, nothing_more, send)
