"""One address for all runs of a program: each has its own page, and they link to each other.

`/runs/2/` is the page of the second run, and whatever it needs is below that path. Paths without a
number are those of the oldest run that is still served.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import Receive, Scope, Send

from elastream.core.health import Health
from elastream.errors import EngineError
from elastream.service.server import listen, new_server, url_of

START_SECONDS = 30.0
_NUMBERED = re.compile(r"/runs/(\d+)(/.*)?")
_OPEN: dict[tuple[str, int], Address] = {}
_LOCK = Lock()


@dataclass
class Seat:
    """The place of one run at an address."""

    address: Address
    number: int
    left: ExitStack = field(default_factory=ExitStack)
    """Closed when the run needs it no more."""

    @property
    def url(self) -> str:
        """The address of the run's page."""
        return self.address.url + (f"/runs/{self.number}/" if self.number > 1 else "")

    @contextmanager
    def serving(
        self, name: str, health: Callable[[], Health], app: FastAPI, stop: Callable[[], None]
    ) -> Iterator[None]:
        """Answer while the block runs; at its end, `stop` ends the open streams."""
        try:
            self.address.show(self.number, Shown(name, health, app))
            yield
        finally:
            stop()
            self.address.hide(self.number)
            self.leave()

    def leave(self) -> None:
        """Give up the place; the last one to leave closes the address."""
        self.left.close()


@dataclass(frozen=True)
class Shown:
    """A run that is served."""

    name: str
    health: Callable[[], Health]
    app: FastAPI
    until: Any = None
    """What the app has open while it answers."""


class Address:
    """A socket, a server on a thread, and the runs that it answers for. It is their ASGI app."""

    def __init__(self, host: str, port: int) -> None:
        self._listening = listen(host, port)
        self._seats = self._taken = 0
        self._runs: Mapping[int, Shown] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = Event()
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None

    @classmethod
    def seat(cls, host: str, port: int) -> Seat:
        """A place at this address, opened for the first one; port 0 is always a new address."""
        with _LOCK:
            address = _OPEN.get((host, port)) or cls(host, port)
            if port:
                _OPEN[host, port] = address
            address._seats += 1
            address._taken += 1
            seat = Seat(address, address._seats)
            seat.left.callback(address._left_by_one, (host, port))
            return seat

    @property
    def url(self) -> str:
        """The address that it can be reached at."""
        return url_of(self._listening)

    def listed(self) -> list[dict[str, Any]]:
        """The runs that are served, oldest first."""
        return [
            {"number": number, "name": run.name, "state": run.health().state}
            for number, run in self._runs.items()
        ]

    def show(self, number: int, run: Shown) -> None:
        """Answer for this run from now on."""
        if self._thread is None:
            self._server = new_server(self)
            self._thread = Thread(
                target=self._server.run, args=([self._listening],), name="service", daemon=True
            )
            self._thread.start()
        self._ready.wait(START_SECONDS)
        if self._loop is None:
            raise EngineError(f"the service at {self.url} has not started in {START_SECONDS:g} s")
        asyncio.run_coroutine_threadsafe(self._enter(number, run), self._loop).result(START_SECONDS)

    def hide(self, number: int) -> None:
        """Stop answering for it."""
        if number in self._runs and self._loop is not None:
            with suppress(TimeoutError):
                leaving = self._leave(number)
                asyncio.run_coroutine_threadsafe(leaving, self._loop).result(START_SECONDS)

    async def _enter(self, number: int, run: Shown) -> None:
        until = run.app.router.lifespan_context(run.app)
        await until.__aenter__()
        self._runs = {**self._runs, number: Shown(run.name, run.health, run.app, until)}

    async def _leave(self, number: int) -> None:
        run = self._runs[number]
        self._runs = {each: of for each, of in self._runs.items() if each != number}
        await run.until.__aexit__(None, None, None)

    def _left_by_one(self, name: tuple[str, int]) -> None:
        with _LOCK:
            self._taken -= 1
            if self._taken:
                return
            if _OPEN.get(name) is self:
                del _OPEN[name]
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        self._listening.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the run that it is for."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        numbered = _NUMBERED.fullmatch(scope["path"])
        runs = self._runs
        number = int(numbered[1]) if numbered else min(runs, default=0)
        if number not in runs:
            gone = JSONResponse({"detail": f"there is no run {number}"}, 404)
            await gone(scope, receive, send)
        elif numbered and numbered[2] is None:
            await RedirectResponse(f"{number}/")(scope, receive, send)
        else:
            path = numbered[2] if numbered else scope["path"]
            inner = {**scope, "path": path, "raw_path": path.encode()}
            await runs[number].app(inner, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._loop = asyncio.get_running_loop()
        await send({"type": "lifespan.startup.complete"})
        self._ready.set()
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
