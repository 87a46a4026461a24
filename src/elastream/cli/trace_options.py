"""Options that every command which reads a trace has in common."""

from __future__ import annotations

from typing import Annotated

import typer

FillGaps = Annotated[
    bool,
    typer.Option(
        "--fill-gaps",
        help="Put steps that are missing from a file on a line between their neighbours.",
    ),
]

TABLE_HELP = "For the policy rlearning: what 'elastream learn' has learned."
