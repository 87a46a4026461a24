"""The bodies of requests and answers, which the OpenAPI page shows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from elastream.predictors.base import LONGEST_HORIZON

MOST_SAMPLES = 100_000
LARGEST_SAMPLE = 1e15
"""Beyond it, a count of events is no longer exact in a double."""

Sample = Annotated[float, Field(strict=True, ge=0, le=LARGEST_SAMPLE, allow_inf_nan=False)]


class Question(BaseModel):
    """A history, and how far to look ahead."""

    model_config = ConfigDict(extra="forbid")

    # One wrong sample is enough to refuse them: a list of 100,000 errors helps nobody.
    samples: Annotated[list[Sample], FailFast()] = Field(
        min_length=2,
        max_length=MOST_SAMPLES,
        description="Events per sample, oldest first.",
        examples=[[120, 135, 150, 170, 160, 180]],
    )
    horizon: int = Field(
        default=6, strict=True, ge=1, le=LONGEST_HORIZON, description="How many samples ahead."
    )


class Answer(BaseModel):
    """A forecast."""

    model: str = Field(description="The model that made it: 'basic' when it stood in.")
    predictions: list[float] = Field(description="Events per sample, nearest first.")
    mean: float
    elapsed_ms: float
    fallback: str | None = Field(default=None, description="Why 'basic' stood in, when it did.")
    trusts: dict[str, float] | None = Field(
        default=None, description="Of a model that combines others: how much each counts."
    )


class ModelCard(BaseModel):
    """A model that this service answers for."""

    name: str
    paper: str = Field(description="Empty for a model that is not in the catalogue.")
    parameters: dict[str, Any]


class Models(BaseModel):
    """Every model that this service answers for."""

    models: list[ModelCard]


class HealthMessage(BaseModel):
    """The health of the run; a service without a run is running when it answers."""

    status: Literal["ok", "failed"] = Field(description="failed: it should be replaced.")
    state: Literal["running", "starting", "degraded", "waiting", "failed"]
    why: str = Field(description="Empty if all is well, and for callers who may not read.")
    version: str


class Refusal(BaseModel):
    """Why a request was refused."""

    detail: str


class UnknownModel(Refusal):
    """There is no such model; `models` lists the available ones."""

    models: list[str]


class Problem(BaseModel):
    """What is wrong with one field."""

    field: str
    problem: str


class BadBody(BaseModel):
    """The body is invalid."""

    detail: list[Problem]
