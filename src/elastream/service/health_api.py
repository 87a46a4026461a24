"""The health of a run: in words, and as the two probes of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response

from elastream import __version__
from elastream.core.health import Health
from elastream.service.messages import HealthMessage

UNWELL: dict[int | str, dict[str, Any]] = {
    503: {"model": HealthMessage, "description": "No; the body says in which state it is."}
}


def add_health(app: FastAPI, health: Callable[[], Health]) -> None:
    """Add `/health`, `/health/live` and `/health/ready`."""

    def message(now: Health, request: Request) -> HealthMessage:
        return HealthMessage(
            status="ok" if now.live else "failed",
            state=now.state.value,
            why=now.why if request.scope["may_read"] else "",
            version=__version__,
        )

    @app.get("/health")
    async def state(request: Request) -> HealthMessage:
        """Return the health of the run, and why; the status is always 200."""
        return message(health(), request)

    @app.get("/health/live", responses=UNWELL)
    async def live(request: Request, response: Response) -> HealthMessage:
        """Say with the status whether the process should be left alone, or replaced."""
        now = health()
        response.status_code = 200 if now.live else 503
        return message(now, request)

    @app.get("/health/ready", responses=UNWELL)
    async def ready(request: Request, response: Response) -> HealthMessage:
        """Say with the status whether events get through."""
        now = health()
        response.status_code = 200 if now.ready else 503
        return message(now, request)
