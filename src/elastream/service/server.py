"""Where the service listens, and for how long."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EADDRINUSE
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

from elastream.errors import InvalidInputError
from elastream.service.connections import BACKLOG, BoundedHttp

SHUTDOWN_SECONDS = 5
UNREAD_SECONDS = 30.0


def listen(host: str, port: int) -> socket.socket:
    """A socket on which the service can be reached, or an error that says why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or error
        remedy = "; choose another port, or 0 for any free one" if error.errno == EADDRINUSE else ""
        raise InvalidInputError(f"cannot listen on {host}, port {port}: {reason}{remedy}") from None
    # Connections inherit it; without it an answer waits 40 ms for the client to confirm its header.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Also inherited: clients that read nothing for this long, or have vanished, are cut off.
        milliseconds = round(1_000 * UNREAD_SECONDS)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    return listening


def url_of(listening: socket.socket) -> str:
    """The address that it can be reached at."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Answer until Ctrl-C; requests under way then get a few seconds to end."""
    with suppress(KeyboardInterrupt), listening:
        new_server(app).run(sockets=[listening])


@contextmanager
def serving(app: ASGIApp, listening: socket.socket, stop: Callable[[], None]) -> Iterator[None]:
    """Answer on a thread while the block runs; at its end, `stop` ends the open streams."""
    server = new_server(app)
    thread = Thread(target=server.run, args=([listening],), name="service", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop()
        server.should_exit = True
        thread.join()
        listening.close()


def new_server(app: ASGIApp) -> uvicorn.Server:
    """A server that limits clients, and logs nothing about them."""
    config = uvicorn.Config(
        app,
        http=BoundedHttp,
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        # An invalid request is its sender's problem, not worth a line in our log.
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    return uvicorn.Server(config)
