"""`elastream state`: look at the state of a run, and move it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elastream.cli.options import Checkpoint
from elastream.errors import InvalidInputError

app = typer.Typer(help="Show or move the state of a stopped run.")

State = Annotated[str, typer.Option(help="The state of a run: a folder or a URL.")]


@app.command("export")
def write(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    state: State,
    checkpoint: Checkpoint = None,
) -> None:
    """Write the whole state of a stopped pipeline to one file."""
    from elastream.engines.spark.backends import open_backend, savepoint

    backend = open_backend(state, checkpoint)
    head = savepoint.export(backend, file)
    typer.echo(f"wrote {file}: {head.pipeline}; {file.stat().st_size:,} bytes")
    if not backend.checkpoints:
        typer.echo("It has no checkpoints: if DataFrames feed sources, name theirs (--checkpoint).")


@app.command("import")
def read(
    file: Annotated[Path, typer.Argument(help="The file that 'elastream state export' wrote.")],
    state: State,
    checkpoint: Checkpoint = None,
) -> None:
    """Fill an empty state, of any kind, from such a file; the next run resumes from it."""
    from elastream.engines.spark.backends import open_backend, savepoint

    backend = open_backend(state, checkpoint)
    head = savepoint.read(file, backend)
    typer.echo(f"filled {backend.url}: {head.pipeline}")


@app.command()
def show(
    state: Annotated[str, typer.Argument(help="The state of a run: a folder or a URL.")],
) -> None:
    """Show whose state it is, and what waits in it."""
    from elastream.cli.render.table import table
    from elastream.engines.spark.backends import open_backend

    backend = open_backend(state)
    described = backend.described()
    if described is None:
        raise InvalidInputError(f"{state}: no run has used this state; name the state of a run")
    pipeline, layout = described
    with backend.connect() as connection:
        totals = connection.ledger.totals()
        letters = [(each.operator, each.events) for each in connection.dead_letters.read()]
    typer.echo(f"{backend.url}\n{pipeline}")
    names = list(dict.fromkeys([*layout, *totals.lanes, *(name for name, _ in totals.counts)]))
    rows = [
        [
            name,
            f"{sum(of.processed for (of_, _), of in totals.counts.items() if of_ == name):,}",
            f"{totals.waiting(name):,}",
            f"{sum(events for operator, events in letters if operator == name):,}",
        ]
        for name in names
    ]
    columns = ["name", "processed", "waiting", "set aside"]
    typer.echo(table(columns, rows, numbers=columns[1:]))
