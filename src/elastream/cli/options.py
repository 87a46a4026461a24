"""Options that several commands have in common."""

from __future__ import annotations

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

TABLE_HELP = "For the policy rlearning: what 'elastream learn' has learned."
TRAINED_HELP = "A trained model, as NAME=FILE; may be given more than once."

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
