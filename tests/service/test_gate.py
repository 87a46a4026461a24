import asyncio
import json

from starlette.types import Message, Receive, Scope, Send

from elastream.service.gate import BodyGate

SCOPE: Scope = {"type": "http", "path": "/", "headers": []}


async def never_called(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("the request should have been refused")


def test_a_body_that_never_ends_is_408() -> None:
    sent: list[Message] = []

    async def trickle() -> Message:
        await asyncio.sleep(0.005)
        return {"type": "http.request", "body": b"[", "more_body": True}

    async def keep(message: Message) -> None:
        sent.append(message)

    asyncio.run(BodyGate(never_called, timeout=0.05)(SCOPE, trickle, keep))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert json.loads(sent[1]["body"]) == {"detail": "the body took longer than 0.05 s"}
