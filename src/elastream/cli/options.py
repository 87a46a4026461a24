"""Options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Serve = Annotated[
    bool, typer.Option("--serve", help="Show the run on a page, and let people steer it.")
]
Host = Annotated[
    str, typer.Option(help="With --serve: where to listen; other machines' reach needs a token.")
]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="With --serve: 0 takes any free one.")]
LOOPBACK, PORT = "127.0.0.1", 8888

FillGaps = Annotated[
    bool,
    typer.Option(
        "--fill-gaps",
        help="Put steps that are missing from a file on a line between their neighbours.",
    ),
]

TraceName = Annotated[str, typer.Option(help="A name of 'elastream traces', or a CSV file.")]
PolicyName = Annotated[str, typer.Option(help="A name of 'elastream policies'.")]
PredictorName = Annotated[
    str, typer.Option(help="A name of 'elastream models', or NAME@URL of a service.")
]
Replicas = Annotated[int | None, typer.Option(help="For the policy static: how many.")]
Table = Annotated[
    Path | None,
    typer.Option(help="For the policy rlearning: what 'elastream learn' has learned."),
]
Trained = Annotated[
    list[str] | None,
    typer.Option(help="A trained model, as NAME=FILE; may be given more than once."),
]
Sample = Annotated[float, typer.Option(help="Length of a sampling window, in seconds.")]
LookBack = Annotated[int, typer.Option("--history", help="How many samples the predictor sees.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Drawn = Annotated[Path | None, typer.Option("--out", help="Draw the run in this folder.")]

Interval = Annotated[
    float | None,
    typer.Option(
        "--td", help="Length of the control interval, in seconds; by policy: 0.25 for slo, else 30."
    ),
]
Objective = Annotated[
    float | None, typer.Option(help="For the policy slo: the latency to keep, in ms; 500.")
]
Quantile = Annotated[
    float | None, typer.Option(help="For the policy slo: of which share of the events; 0.99.")
]
