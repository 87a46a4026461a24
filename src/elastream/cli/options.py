"""Options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elastream.errors import InvalidInputError

# Options that few need have a panel of their own in the help.
SCALING, QUEUES, MACHINES, PAGE = (
    "Scaling in detail",
    "Queues and errors",
    "Machines",
    "With --serve",
)

App = Annotated[
    str,
    typer.Option(help="twitter, twitter-unequal, twitter-complex, diamond, star, dns or logs."),
]
Serve = Annotated[
    bool, typer.Option("--serve", help="Show the run on a web page, where people can steer it.")
]
Host = Annotated[
    str,
    typer.Option(
        help="The address to listen on; any but loopback requires a token.", rich_help_panel=PAGE
    ),
]
Port = Annotated[
    int,
    typer.Option(min=0, max=65_535, help="The port; 0 takes any free one.", rich_help_panel=PAGE),
]
LOOPBACK, PORT = "127.0.0.1", 8888

FillGaps = Annotated[
    bool,
    typer.Option(
        "--fill-gaps",
        help="Interpolate steps that are missing from a file.",
    ),
]

TraceName = Annotated[str, typer.Option(help="A name from 'elastream traces', or a CSV file.")]
PolicyName = Annotated[str, typer.Option(help="A name from 'elastream policies'.")]
PredictorName = Annotated[
    str, typer.Option(help="A name from 'elastream models', or NAME@URL of a service.")
]
Replicas = Annotated[
    int | None,
    typer.Option(help="For the policy static: how many replicas.", rich_help_panel=SCALING),
]
Table = Annotated[
    Path | None,
    typer.Option(
        help="For the policy rlearning: the table that 'elastream learn' wrote.",
        rich_help_panel=SCALING,
    ),
]
Trained = Annotated[
    list[str] | None,
    typer.Option(help="A trained model, as NAME=FILE; may be given more than once."),
]
Sample = Annotated[
    float, typer.Option(help="Length of a sampling window, in seconds.", rich_help_panel=SCALING)
]
LookBack = Annotated[
    int, typer.Option(help="How many samples the predictor sees.", rich_help_panel=SCALING)
]
OwnPipelineName = Annotated[
    str | None,
    typer.Argument(help="Your own pipeline, as FILE.py:NAME; without it, see --app."),
]
Pool = Annotated[
    int | None,
    typer.Option(help="Replicas in the pool of each operator; by default as declared."),
]
Initial = Annotated[
    list[str] | None,
    typer.Option(
        help="Active replicas at the start, as OPERATOR=COUNT, or COUNT for all; by default what "
        "the policy wants, or half of the pool while nothing is known.",
        rich_help_panel=SCALING,
    ),
]
Guards = Annotated[
    list[str] | None,
    typer.Option(
        "--guard",
        help="A limit on the policy, such as cooldown:up=10,down=60.",
        rich_help_panel=SCALING,
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        help="With a state on Kafka: a folder or URL where Spark notes how far DataFrames were "
        "read; it must survive this machine."
    ),
]
QueueSize = Annotated[
    int,
    typer.Option(min=1, help="How many events may wait for an operator.", rich_help_panel=QUEUES),
]
OnFull = Annotated[
    str,
    typer.Option(
        help="block makes the producers of a full queue wait; drop loses events.",
        rich_help_panel=QUEUES,
    ),
]
QUEUE_SIZE, ON_FULL = 100_000, "block"
ServiceMs = Annotated[
    float, typer.Option(help="How many ms an event takes at every operator, besides its real work.")
]
Speed = Annotated[float, typer.Option(help="Play the trace this many times as fast.")]
Scale = Annotated[float, typer.Option(help="Multiply the input rates.")]
Duration = Annotated[
    float | None, typer.Option(help="Stop after this many seconds; by default when the trace ends.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Drawn = Annotated[Path | None, typer.Option("--out", help="Draw the run in this folder.")]

Interval = Annotated[
    float | None,
    typer.Option(
        "--td", help="Length of the control interval, in seconds; by default 0.25 for slo, else 30."
    ),
]
Objective = Annotated[
    float | None,
    typer.Option(help="For the policy slo: the latency to keep, in ms; by default 500."),
]
Quantile = Annotated[
    float | None,
    typer.Option(
        help="For the policy slo: the share of events that must keep it; by default 0.99."
    ),
]


def is_given(context: typer.Context, option: str) -> bool:
    """Whether the user typed it, whatever its value."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def refuse_without(context: typer.Context, needed: str, *options: str) -> None:
    """Refuse options that would change nothing, as they need another one."""
    for option in options if not is_given(context, needed) else ():
        if is_given(context, option):
            name = option.replace("_", "-")
            raise InvalidInputError(f"--{name} changes nothing without --{needed}: add that, too")
