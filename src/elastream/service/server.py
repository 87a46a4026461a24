"""Where the service listens, and for how long."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address

import uvicorn
from fastapi import FastAPI

from elastream.errors import InvalidInputError

SHORTEST_TOKEN = 16
SHUTDOWN_SECONDS = 5


def check_access(host: str, token: str | None) -> None:
    """A service that others can reach wants a token, and one that cannot be guessed."""
    if token is None and not is_loopback(host):
        raise InvalidInputError(
            f"{host} can be reached from other machines, and there the service wants a token: "
            "set ELASTREAM_TOKEN, or listen on 127.0.0.1"
        )
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii()):
        raise InvalidInputError(
            f"the token must be at least {SHORTEST_TOKEN} characters, all of them ASCII"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A socket on which the service can be reached, or an error that says why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        reason = error.strerror or error
        raise InvalidInputError(f"cannot listen on {host}, port {port}: {reason}") from None
    # Connections inherit it; without it an answer waits 40 ms for the client to confirm its header.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve(app: FastAPI, listening: socket.socket, announce: Callable[[str], None]) -> None:
    """Answer until Ctrl-C; what is under way then gets a few seconds to end."""
    host, port = listening.getsockname()[:2]
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=SHUTDOWN_SECONDS
    )
    server = uvicorn.Server(config)
    announce(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        announce("stopped")
    finally:
        listening.close()
