"""The paths that show a running pipeline and steer it."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from elastream import __version__
from elastream.control import Limits
from elastream.control.steering import Steering
from elastream.core.health import Health
from elastream.service import control_messages as messages
from elastream.service.columns import KEPT_SECONDS
from elastream.service.decisions import settings_message
from elastream.service.live import KEPT_DECISIONS, Live
from elastream.service.messages import BadBody, Refusal

MOST_STREAMS = 64
MOST_PER_CLIENT = 16
HEALTH_SECONDS = 1.0
CHANGE_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": Refusal, "description": "The request carries no known token."},
    403: {
        "model": Refusal,
        "description": "The token may only read, or the request comes from another site.",
    },
    409: {"model": Refusal, "description": "The run is over."},
    422: {"model": BadBody, "description": "A field is invalid; nothing has changed."},
    429: {"model": Refusal, "description": "Too many changes at once."},
}
OPERATOR_REFUSALS = {
    **CHANGE_REFUSALS,
    404: {"model": Refusal, "description": "There is no such operator."},
}


@dataclass(frozen=True)
class RunningPipeline:
    """What a service needs to show and steer a pipeline."""

    engine: Literal["spark", "simulation", "attached"]
    live: Live
    steering: Steering
    look_back: int
    """How many samples the predictor sees."""
    health: Callable[[], Health]
    """Returns the health of the run; may be called at any time."""

    def listed(self) -> list[dict[str, Any]]:
        """It, as the only run that is served here."""
        return [{"number": 1, "name": self.live.topology.name, "state": self.health().state}]

    async def follow_health(self) -> None:
        """Show every change of it, until cancelled."""
        while True:
            self.live.show_health(self.health())
            await asyncio.sleep(HEALTH_SECONDS)


def add_control(app: FastAPI, running: RunningPipeline, token_needed: bool) -> None:
    """Add all paths under `/api/`."""
    _add_reading(app, running, token_needed)
    _add_stream(app, running)
    _add_settings(app, running.steering)
    _add_operators(app, running.steering)


def add_runs(app: FastAPI, listed: Callable[[], list[dict[str, Any]]]) -> None:
    """Add the path that lists the runs of this program."""

    @app.get("/api/runs", response_model=list[messages.RunMessage])
    async def runs() -> Any:
        """List the runs that are served here, oldest first; the page of each is `/runs/NUMBER/`."""
        return listed()


def _add_reading(app: FastAPI, running: RunningPipeline, token_needed: bool) -> None:
    live, steering = running.live, running.steering

    @app.get("/api/pipeline", response_model=messages.PipelineMessage)
    async def pipeline() -> Any:
        """Return the pipeline as declared, and what it can be switched to."""
        topology = live.topology
        return {
            "name": topology.name,
            "engine": running.engine,
            "version": __version__,
            "started": live.started,
            "clock_zero": None if running.engine == "simulation" else live.clock_zero,
            "sources": [source.name for source in topology.sources],
            "operators": [
                {
                    "name": of.name,
                    "pool": of.pool,
                    "minimum": of.minimum,
                    "maximum": of.pool,
                    "inside": list(of.inside),
                }
                for of in topology.operators
            ],
            "edges": [{"origin": edge.origin, "target": edge.target} for edge in topology.edges],
            "choices": {
                "policies": list(steering.choices.policies),
                "predictors": list(steering.choices.predictors),
            },
            "token_needed": token_needed,
        }

    # Much to put into text: on a thread, so that streams flow on meanwhile.
    @app.get("/api/history", response_model=messages.HistoryMessage)
    def history(
        seconds: Annotated[float, Query(gt=0, le=KEPT_SECONDS)] = KEPT_SECONDS,
        accept_encoding: Annotated[str, Header()] = "",
    ) -> Response:
        """Return the recent samples, in columns."""
        body = live.history(seconds)
        headers = {"Vary": "Accept-Encoding"}
        if "gzip" in accept_encoding:
            packer = zlib.compressobj(1, wbits=31)
            body = packer.compress(body) + packer.flush()
            headers["Content-Encoding"] = "gzip"
        return Response(body, media_type="application/json", headers=headers)

    @app.get("/api/decisions", response_model=list[messages.Decision])
    async def decisions(limit: Annotated[int, Query(ge=1, le=KEPT_DECISIONS)] = 200) -> Any:
        """Return what the loop decided and what people changed, newest first."""
        return live.decisions(limit)

    @app.get("/api/problems", response_model=messages.ProblemsMessage)
    async def problems() -> Any:
        """Return which events were set aside or dropped, by error, and which replicas restarted."""
        return live.problems()

    @app.get("/api/forecast", response_model=messages.ForecastMessage)
    async def forecast() -> Any:
        """Return how good the forecasts have been."""
        return live.forecast()


def _add_stream(app: FastAPI, running: RunningPipeline) -> None:
    feed = running.live.feed

    @app.get(
        "/api/stream",
        response_class=Response,
        responses={
            200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."},
            429: {"model": Refusal, "description": "Too many streams are open."},
        },
    )
    async def stream(
        request: Request,
        after: Annotated[int | None, Query(ge=0, le=2**62)] = None,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Stream what happens, as it happens; with Last-Event-ID, everything since that event."""
        client = request.client.host if request.client else ""
        for most, listeners in (
            (MOST_STREAMS, feed.listeners()),
            (MOST_PER_CLIENT, feed.listeners(client)),
        ):
            if listeners >= most:
                detail = f"{listeners} streams are open already: close one"
                return JSONResponse({"detail": detail}, 429)
        if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
            after = int(last_event_id[:18])
        # From here on, not from when the answer is under way: a client loads the history meanwhile.
        seen = feed.last if after is None else after
        greeting = running.live.greeting(settings_message(running.steering.settings))

        async def parts() -> Any:
            yield greeting
            async for part in feed.listen(seen, client):
                yield part

        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(parts(), media_type="text/event-stream", headers=headers)


def _add_settings(app: FastAPI, steering: Steering) -> None:
    @app.get("/api/settings", response_model=messages.SettingsMessage)
    async def settings() -> Any:
        """Return all settings."""
        return settings_message(steering.settings)

    # Changes are recorded in a file, and a model may have to be loaded: on a thread.
    @app.patch("/api/settings", response_model=messages.SettingsMessage, responses=CHANGE_REFUSALS)
    def change(body: messages.Changes, request: Request) -> Any:
        """Change settings: all given fields, or none."""
        wanted = body.model_dump(exclude_unset=True)
        return settings_message(steering.change(_who(request), wanted))

    @app.post(
        "/api/stop",
        status_code=202,
        response_model=messages.SettingsMessage,
        responses=CHANGE_REFUSALS,
    )
    def stop(body: messages.Stop, request: Request) -> Any:
        """End the run."""
        return settings_message(steering.stop(_who(request), body.drain))


def _add_operators(app: FastAPI, steering: Steering) -> None:
    limits, replicas = "/api/operators/{name}/limits", "/api/operators/{name}/replicas"
    told: dict[str, Any] = {
        "response_model": messages.SettingsMessage,
        "responses": OPERATOR_REFUSALS,
    }

    @app.put(limits, **told)
    def limit(name: str, body: messages.LimitsBody, request: Request) -> Any:
        """Set the minimum and maximum replicas of an operator."""
        wanted = Limits(body.minimum, body.maximum)
        return settings_message(steering.limit(_who(request), name, wanted))

    @app.delete(limits, **told)
    def release_limits(name: str, request: Request) -> Any:
        """Restore the declared limits of an operator."""
        return settings_message(steering.release_limits(_who(request), name))

    @app.put(replicas, **told)
    def set_replicas(name: str, body: messages.ReplicasBody, request: Request) -> Any:
        """Set the replicas of an operator by hand, whatever the policy says, until released."""
        return settings_message(steering.set_replicas(_who(request), name, body.replicas))

    @app.delete(replicas, **told)
    def release_replicas(name: str, request: Request) -> Any:
        """Leave an operator to the policy again."""
        return settings_message(steering.release_replicas(_who(request), name))


def _who(request: Request) -> str:
    """Whose token the request carries."""
    return str(request.scope["who"])
