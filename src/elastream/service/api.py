"""The service itself: its paths, and what each answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Security
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST

from elastream import __version__
from elastream.core.health import Health
from elastream.errors import UnknownNameError
from elastream.predictors import Predictor
from elastream.predictors.cards import CARDS, parameters
from elastream.predictors.wire import to_wire
from elastream.service import messages
from elastream.service.access import Access
from elastream.service.control_api import RunningPipeline, add_control, add_runs
from elastream.service.docs_page import HEADERS, docs_page
from elastream.service.forecaster import Forecaster
from elastream.service.gate import BodyGate, ChangeGate, SiteGate, TokenGate
from elastream.service.health_api import add_health
from elastream.service.page_files import HeaderGate, add_page
from elastream.service.pipeline_metrics import PipelineCollector
from elastream.service.refusals import add_refusals
from elastream.service.what_if import add_what_if

OPEN = Access()

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": messages.Refusal, "description": "The body is not JSON."},
    404: {"model": messages.UnknownModel, "description": "There is no such model."},
    408: {"model": messages.Refusal, "description": "The body did not arrive in time."},
    413: {"model": messages.BadBody | messages.Refusal, "description": "The body is too large."},
    422: {"model": messages.BadBody, "description": "The body is invalid."},
}


def create_app(
    models: Mapping[str, Predictor],
    *,
    timeout: float = 10.0,
    workers: int = 8,
    access: Access = OPEN,
    running: RunningPipeline | None = None,
    runs: Callable[[], list[dict[str, Any]]] | None = None,
) -> FastAPI:
    """A service that answers for `models`, each forecast within `timeout` seconds.

    With a running pipeline it also shows that, and lets people steer it; `runs` lists it and those
    that are served with it.
    """
    forecaster = Forecaster(models, workers=workers, timeout=timeout)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        following = running and asyncio.create_task(running.follow_health())
        with forecaster.running():
            yield
        if following:
            following.cancel()

    app = FastAPI(
        title="elastream" if running else "elastream predictors",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        dependencies=[Security(HTTPBearer(auto_error=False))] if access.wants_token else None,
    )
    # The last one added is the first to see a request.
    app.add_middleware(BodyGate, timeout=timeout)
    app.add_middleware(ChangeGate, access=access)
    app.add_middleware(TokenGate, access=access, open_reads=running is not None)
    app.add_middleware(SiteGate, access=access)
    app.add_middleware(HeaderGate)
    add_refusals(app)
    _add_prediction(app, forecaster)
    _add_information(app, forecaster)
    add_health(app, running.health if running else Health)
    if running:
        add_control(app, running, token_needed=access.wants_token)
        add_runs(app, runs or running.listed)
        add_what_if(app, running)
        forecaster.metrics.add(PipelineCollector(running))
        add_page(app)
    else:
        app.get("/", include_in_schema=False)(lambda: RedirectResponse("docs"))
    return app


def _add_prediction(app: FastAPI, forecaster: Forecaster) -> None:
    @app.post(
        "/predict/{model}",
        response_model=messages.Answer,
        response_model_exclude_none=True,
        responses=REFUSALS,
    )
    async def predict(model: str, question: messages.Question) -> Any:
        """Forecast the samples that follow those in the body."""
        if model not in forecaster.models:
            known = sorted(forecaster.models)
            detail = str(UnknownNameError("predictor", model, known))
            return JSONResponse({"detail": detail, "models": known}, status_code=404)
        made = await forecaster.forecast(model, question.samples, question.horizon)
        return to_wire(*made)


def _card(name: str) -> messages.ModelCard:
    """Of a model that is not in the catalogue, such as one at a URL, only the name is known."""
    if name not in CARDS:
        return messages.ModelCard(name=name, paper="", parameters={})
    return messages.ModelCard(name=name, paper=CARDS[name].paper, parameters=parameters(name))


def _add_information(app: FastAPI, forecaster: Forecaster) -> None:
    @app.get("/models")
    def models() -> messages.Models:
        """List the models that this service answers for."""
        return messages.Models(models=[_card(name) for name in forecaster.models])

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        """Return all metrics, for Prometheus."""
        return PlainTextResponse(forecaster.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()), headers=HEADERS)
