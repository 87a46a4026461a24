"""`elastream learn`: what the policy rlearning knows, from a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elastream.cli.options import FillGaps
from elastream.errors import InvalidInputError


def learn(
    out: Annotated[Path, typer.Option(help="Where the table goes.")],
    app: Annotated[str, typer.Option(help="The application, such as twitter.")] = "twitter",
    trace: Annotated[
        str, typer.Option(help="A name of 'elastream traces', or a CSV file.")
    ] = "spiky",
    td: Annotated[float, typer.Option(help="Length of the control interval, in seconds.")] = 30.0,
    episodes: Annotated[
        int, typer.Option(min=1, help="How often the trace is played to learn from it.")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    fill_gaps: FillGaps = False,
) -> None:
    """Learn which parallelism suits which input rate, for 'simulate --policy rlearning --table'."""
    from elastream.experiments.rlearning_training import trained_on
    from elastream.workloads import APPLICATIONS
    from elastream.workloads.choice import chosen_trace

    if not out.parent.is_dir():
        raise InvalidInputError(f"--out {out}: must be a file in a folder that exists")
    if not 0 < td < float("inf"):
        raise InvalidInputError(f"--td {td:g}: an interval must be longer than 0 s")
    rates = chosen_trace(trace, seed, fill_gaps)
    trained_on(APPLICATIONS[app](), rates, td, episodes, seed).save(out)
    typer.echo(f"learned from {rates.duration:,.0f} s of {trace}: {out}")
