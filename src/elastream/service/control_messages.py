"""The messages between a page and a running pipeline; the OpenAPI page shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Column = list[float | None]
LEFT_OUT: Any = None
"""The default of a field whose type has no None, so that null is refused."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Changes(_Body):
    """Any of these settings; those that are left out stay as they are."""

    policy: Name = Field(default=LEFT_OUT)
    predictor: Name = Field(default=LEFT_OUT)
    td: float = Field(
        default=LEFT_OUT,
        strict=True,
        gt=0,
        allow_inf_nan=False,
        description="The length of the control interval, in seconds.",
    )
    advice_only: bool = Field(
        default=LEFT_OUT, strict=True, description="Plans are recorded, not applied."
    )
    paused: bool = Field(
        default=LEFT_OUT, strict=True, description="Nothing is changed, except by hand."
    )


class LimitsBody(_Body):
    """The minimum and maximum replicas of an operator."""

    minimum: Count
    maximum: Count


class ReplicasBody(_Body):
    """Replicas of an operator, set by hand until they are released."""

    replicas: Count


class Stop(_Body):
    """End the run."""

    drain: bool = Field(default=True, strict=True, description="Finish the events inside first.")


class WhatIf(_Body):
    """What to replay the recorded input with."""

    policy: Name
    predictor: Name


class LimitsMessage(BaseModel):
    """Limits of an operator."""

    minimum: int
    maximum: int


class SettingsMessage(BaseModel):
    """All settings."""

    policy: str
    predictor: str
    td: float
    advice_only: bool
    paused: bool
    stopping: bool
    limits: dict[str, LimitsMessage]
    by_hand: dict[str, int]
    revision: int = Field(description="Grows with every change while the run lasts.")


class OperatorMessage(LimitsMessage):
    """An operator as it was declared; a chain is one, with the name of its first."""

    name: str
    pool: int
    inside: list[str] = Field(description="Of a chain: its operators, from the first to the last.")


class EdgeMessage(BaseModel):
    """The way from one node to the next."""

    origin: str
    target: str


class ChoicesMessage(BaseModel):
    """What a running pipeline can be switched to."""

    policies: list[str]
    predictors: list[str]


class PipelineMessage(BaseModel):
    """A running pipeline as it was declared."""

    name: str
    engine: Literal["spark", "simulation", "attached"]
    version: str
    started: float = Field(description="In seconds since 1970.")
    clock_zero: float | None = Field(
        description="When the engine's clock stood at 0, in seconds since 1970; null where its "
        "time is virtual."
    )
    sources: list[str]
    operators: list[OperatorMessage]
    edges: list[EdgeMessage]
    choices: ChoicesMessage
    token_needed: bool = Field(description="Whether changes require a token.")


class OperatorColumns(BaseModel):
    """One operator over time; rates in events per second."""

    active: Column
    queued: Column
    utilization: Column
    received: Column
    processed: Column


class QueueMessage(BaseModel):
    """What waits for an operator, and which replicas are missing."""

    oldest: float = Field(description="How long the oldest waiting event has waited, in seconds.")
    draining: int = Field(description="Replicas that were turned off but are still finishing work.")
    pending: int = Field(description="Replicas that are planned but not running yet.")
    dead: int = Field(description="Planned replicas that have been silent for too long.")
    stalled: int = Field(
        description="Replicas that have been busy with one unit for unusually long."
    )


class HeldMessage(BaseModel):
    """What a source holds back, because the pipeline is full."""

    held: float = Field(description="Events.")
    lag: float = Field(description="How long the oldest of them has been held, in seconds.")


class BacklogMessage(BaseModel):
    """What waits now."""

    operators: dict[str, QueueMessage]
    sources: dict[str, HeldMessage]


class HistoryMessage(BaseModel):
    """The recent samples, oldest first, one entry of every column for each."""

    time: list[float] = Field(description="When the sample ended, in seconds of the engine.")
    input: Column
    forecast: Column
    forecast_low: Column = Field(description="Of the 90 % band, as far as it is known.")
    forecast_high: Column
    throughput: Column
    latency_p50: Column = Field(description="In seconds.")
    latency_p99: Column
    executors: Column = Field(description="Those of a cluster; null where there are none.")
    executor_seconds: Column = Field(description="Since the start.")
    operators: dict[str, OperatorColumns]
    edges: dict[str, float] = Field(description="origin>target: the newest rate.")
    backlog: BacklogMessage
    event: int = Field(description="The newest event of the stream that is included here.")


class ChangeMessage(BaseModel):
    """More or fewer replicas of an operator, or, as `(executors)`, more or fewer executors."""

    operator: str
    before: int
    after: int
    reasons: list[str]


class CycleMessage(BaseModel):
    """What the loop decided at the end of an interval."""

    kind: Literal["cycle"]
    number: int
    time: float
    outcome: str
    note: str
    model: str | None
    forecast: float | None = Field(description="Forecast for the next interval, in events/s.")
    changes: list[ChangeMessage]


class SteeringMessage(BaseModel):
    """What a person changed."""

    kind: Literal["steering"]
    time: float
    at: float = Field(description="In seconds since 1970.")
    who: str
    what: str


class ForecastMessage(BaseModel):
    """How good the forecasts have been."""

    model: str | None
    recent_error: float | None = Field(description="Mean absolute error, as a share of the input.")
    coverage: float | None = Field(description="How often the input was within the 90 % band.")
    pinball: float | None = Field(description="Loss of the band's ends, in events per second.")
    trusts: dict[str, float] = Field(description="Which models `auto` trusts most, and how much.")
    fallbacks: int
    last_fallback: str | None


class RunMessage(BaseModel):
    """A run that is served here; its page is at `/runs/NUMBER/`."""

    number: int
    name: str
    state: str = Field(description="starting, running, degraded, waiting or failed.")


class OperatorProblems(BaseModel):
    """What has gone wrong at an operator since the start."""

    set_aside: float = Field(description="Events on which its function failed; they are kept.")
    dropped: float = Field(description="Events that were lost.")
    restarted: float = Field(description="Replicas that were replaced.")


class FailureMessage(BaseModel):
    """An error on which an operator set events aside; numbers in it are left out."""

    operator: str
    error: str
    events: float


class ProblemsMessage(BaseModel):
    """What has gone wrong with single events and replicas since the start."""

    operators: dict[str, OperatorProblems]
    failures: list[FailureMessage] = Field(description="Most events first.")


class Side(BaseModel):
    """One of two runs that are compared."""

    policy: str
    predictor: str
    replica_seconds: float
    latency_mean: float | None = Field(description="In seconds.")
    latency_p99: float | None
    backlog: float = Field(description="The most events that waited at the end of an interval.")
    time: list[float]
    replicas: list[float]
    queued: list[float]


class Comparison(BaseModel):
    """What was recorded, and what the other choice would have done, in the simulator."""

    recorded: Side
    replayed: Side


Decision = CycleMessage | SteeringMessage
