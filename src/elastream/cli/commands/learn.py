"""`elastream learn`: what the policy rlearning knows, from a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elastream.cli.options import (
    FillGaps,
    TraceName,
)
from elastream.errors import InvalidInputError


def learn(
    out: Annotated[Path, typer.Option(help="Where the table goes.")],
    app: Annotated[str, typer.Option(help="The application, such as twitter.")] = "twitter",
    trace: TraceName = "spiky",
    td: Annotated[float, typer.Option(help="Length of the control interval, in seconds.")] = 30.0,
    episodes: Annotated[int, typer.Option(min=1, help="How often to play the trace.")] = 20,
    speed: Annotated[float, typer.Option(help="Play the trace this many times as fast.")] = 1.0,
    scale: Annotated[float, typer.Option(help="Multiply the input rates.")] = 1.0,
    duration: Annotated[
        float | None, typer.Option(help="Learn from this many seconds of the trace.")
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(min=1, help="Replicas in the pool of each operator; by default as declared."),
    ] = None,
    service_ms: Annotated[
        float | None,
        typer.Option(help="Execution time per event, in ms; by default the application's."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    fill_gaps: FillGaps = False,
) -> None:
    """Learn which parallelism suits which input rate, for '--policy rlearning --table'.

    Give the options of the run that the table is for.
    """
    from elastream.experiments.rlearning_training import trained_on
    from elastream.running.traces import trace as chosen_trace
    from elastream.workloads import APPLICATIONS

    if not out.parent.is_dir():
        raise InvalidInputError(f"--out {out}: must be a file in a folder that exists")
    if not 0 < td < float("inf"):
        raise InvalidInputError(f"--td {td:g}: an interval must be longer than 0 s")
    if service_ms is not None and not 0 < service_ms < float("inf"):
        raise InvalidInputError(f"--service-ms {service_ms:g}: it must be above 0 ms")
    rates = chosen_trace(
        trace, speed=speed, scale=scale, duration=duration, seed=seed, fill_gaps=fill_gaps
    )
    size: dict[str, float] = {} if pool is None else {"pool": pool}
    if service_ms is not None:
        size["execution_time"] = service_ms / 1000
    trained_on(APPLICATIONS[app](**size), rates, td, episodes, seed).save(out)
    typer.echo(f"learned from {rates.duration:,.0f} s of {trace}: {out}")
