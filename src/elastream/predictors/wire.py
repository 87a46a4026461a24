"""A forecast as JSON: what the service answers, a client reads and `predict --json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from elastream.predictors.base import Forecast


def to_wire(forecast: Forecast, elapsed_ms: float) -> dict[str, Any]:
    """The forecast, and how long it took.

    `fallback` is only there when `basic` stood in, `trusts` when the model combines others.
    """
    answer: dict[str, Any] = {
        "model": forecast.model,
        "predictions": forecast.values.tolist(),
        "mean": forecast.mean,
        "elapsed_ms": round(elapsed_ms, 3),
    }
    if forecast.fallback is not None:
        answer["fallback"] = forecast.fallback
    if forecast.trusts:
        answer["trusts"] = dict(forecast.trusts)
    return answer


def from_wire(answer: Mapping[str, Any], horizon: int) -> Forecast:
    """The forecast in an answer, or a ValueError when it is not one of `horizon` samples."""
    if not isinstance(answer, Mapping) or not {"model", "predictions"} <= set(answer):
        raise ValueError("the answer is not a forecast")
    values = np.asarray(answer["predictions"], dtype=np.float64)
    if values.shape != (horizon,) or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError(f"the answer is not {horizon} samples, finite and not negative")
    return Forecast(values, str(answer["model"]), answer.get("fallback"))
