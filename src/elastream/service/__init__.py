"""One service: the predictors over REST, as in PA-SPS section 3.2, and a pipeline that runs."""

from __future__ import annotations

from elastream.errors import MissingExtraError

try:
    import fastapi  # noqa: F401
    import orjson  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401
except ModuleNotFoundError:
    raise MissingExtraError("the predictor service", "serve") from None
