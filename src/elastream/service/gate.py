"""What a request meets before it is read: the token, the size limit and the time limit.

These are plain ASGI, outside the framework, so that the body of a stranger is never read and one
that is too large is never held.
"""

from __future__ import annotations

import asyncio
from hmac import compare_digest

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 8 * 1024 * 1024
OPEN_PATHS = {"/health"}


class TokenGate:
    """Lets a request pass that carries the token; anyone may ask whether the service is up."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compare in constant time: how long it takes tells nothing about the token."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            given = Headers(scope=scope).get("authorization", "").encode()
            if not compare_digest(given, self._expected):
                refusal = JSONResponse(
                    {"detail": "this service wants a token: send 'Authorization: Bearer TOKEN'"},
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


class BodyGate:
    """Reads a body of at most 8 MiB, that arrives in time, and hands it on whole."""

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


async def _refuse(status: int, detail: str, scope: Scope, send: Send) -> None:
    async def nothing_more() -> Message:
        return {"type": "http.disconnect"}

    # The rest of the body stays unread, so that the connection cannot be used again.
    refusal = JSONResponse({"detail": detail}, status, headers={"Connection": "close"})
    await refusal(scope, nothing_more, send)
