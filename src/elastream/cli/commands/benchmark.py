"""`elastream benchmark`: how long an event takes at every operator, before anything is deployed."""

from __future__ import annotations

from typing import Annotated

import typer

from elastream.errors import InvalidInputError


def benchmark(
    pipeline: Annotated[str, typer.Argument(help="Your own pipeline, as FILE.py:NAME.")],
    events: Annotated[
        int, typer.Option(min=1, help="How many events to measure with; fewer if they are slow.")
    ] = 1_000,
    repeats: Annotated[
        int, typer.Option(min=1, help="How often to measure; the median counts.")
    ] = 5,
) -> None:
    """Measure how long an event takes at every operator, on one core: et_i of PA-SPS equation 2.

    The events of your sources run through the pipeline on this machine, without Spark.
    """
    from elastream.cli.own_pipeline import OwnPipeline
    from elastream.cli.rehearsal import rehearse
    from elastream.cli.render.table import table

    own = OwnPipeline.named(pipeline)
    unmade = ", ".join(of.name for of in own.topology.sources if of.name not in own.makers)
    if unmade:
        raise InvalidInputError(
            f"{pipeline}: it has no function that makes events for {unmade}: give each a "
            "make(first, count) in 'sources'"
        )
    found = rehearse(own.topology, own.makers, events, repeats).operators
    if not found:
        raise InvalidInputError(f"{pipeline}: no event reached an operator: try more --events")
    rows = [
        [name, f"{of.events:,}", f"{1000 * of.seconds:,.4f}", f"{1 / of.seconds:,.0f}"]
        if of.seconds > 0
        else [name, f"{of.events:,}", "0", "-"]
        for name, of in found.items()
    ]
    numbers = ["events", "ms per event", "events/s"]
    typer.echo(table(["operator", *numbers], rows, numbers=numbers))
    typer.echo("declare them with execution_time=...; a run keeps measuring")
