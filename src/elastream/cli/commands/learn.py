"""`elastream learn`: what the policy rlearning knows, from a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elastream.cli.options import (
    App,
    FillGaps,
    OwnPipelineName,
    Pool,
    Scale,
    ServiceMs,
    Speed,
    TraceName,
)
from elastream.errors import InvalidInputError


def learn(
    out: Annotated[Path, typer.Option(help="Where the table goes.")],
    pipeline: OwnPipelineName = None,
    app: App = "twitter",
    trace: TraceName = "spiky",
    td: Annotated[float, typer.Option(help="Length of the control interval, in seconds.")] = 30.0,
    episodes: Annotated[int, typer.Option(min=1, help="How often to play the trace.")] = 20,
    duration: Annotated[
        float | None, typer.Option(help="Learn from this many seconds of the trace.")
    ] = None,
    speed: Speed = 1.0,
    scale: Scale = 1.0,
    pool: Pool = None,
    service_ms: ServiceMs = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    fill_gaps: FillGaps = False,
) -> None:
    """Learn which parallelism suits which input rate, for '--policy rlearning --table'.

    Give the options of the run that the table is for.
    """
    from elastream.cli.simulated import simulated_application
    from elastream.experiments.rlearning_training import trained_on
    from elastream.running.traces import trace as chosen_trace

    if not out.parent.is_dir():
        raise InvalidInputError(f"--out {out}: must be a file in a folder that exists")
    if not 0 < td < float("inf"):
        raise InvalidInputError(f"--td {td:g}: an interval must be longer than 0 s")
    rates = chosen_trace(
        trace, speed=speed, scale=scale, duration=duration, seed=seed, fill_gaps=fill_gaps
    )
    application = simulated_application(pipeline, app, pool, service_ms)
    trained_on(application, rates, td, episodes, seed).save(out)
    typer.echo(f"learned from {rates.duration:,.0f} s of {trace}: {out}")
