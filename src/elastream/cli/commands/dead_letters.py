"""`elastream dead-letters`: events that operators could not process."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from elastream.engines.spark.backends.base import DeadLetter, Transport

MOST_ERRORS = 20
"""Errors often quote the event that they are about: there may be as many as events."""


def dead_letters(
    folder: Annotated[Path, typer.Argument(help="The state folder of a run.")],
    operator: Annotated[str | None, typer.Option(help="Only those of this operator.")] = None,
    last: Annotated[int, typer.Option(min=0, help="How many to show, newest first.")] = 10,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every dead letter, one JSON object a line.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Put them back into their operators' queues.")
    ] = False,
) -> None:
    """Show the events that operators could not process, and why; or let them be tried again."""
    from elastream.engines.spark.backends.sqlite import SqliteTransport

    with closing(SqliteTransport.existing(folder)) as transport:
        if retry:
            _retry(transport, operator)
        elif as_json:
            for letter in transport.dead_letters(operator):
                typer.echo(json.dumps(_readable(letter), default=str))
        else:
            _show(transport, operator, last)


def _retry(transport: Transport, operator: str | None) -> None:
    letters = list(transport.dead_letters(operator))
    count = transport.retry(letters)
    typer.echo(f"put back: {count} dead letters; those that fail again come back here")


def _show(transport: Transport, operator: str | None, last: int) -> None:
    from elastream.cli.render.table import table

    events: Counter[tuple[str, str]] = Counter()
    for letter in transport.dead_letters(operator):
        events[letter.operator, _first_line(letter.error)] += letter.events
    if not events:
        typer.echo("there are no dead letters")
        return
    rows = [[name, error, f"{count:,}"] for (name, error), count in events.most_common(MOST_ERRORS)]
    typer.echo(table(["operator", "error", "events"], rows, numbers=["events"]))
    if len(events) > MOST_ERRORS:
        typer.echo(f"and {len(events) - MOST_ERRORS:,} more errors")
    for letter in islice(transport.dead_letters(operator), last):
        readable = _readable(letter)
        typer.echo(f"\n{readable['time']}  {letter.operator}: {letter.error}")
        for event in readable["events"]:
            typer.echo(f"  {json.dumps(event, default=str)}")


def _readable(letter: DeadLetter) -> dict[str, Any]:
    from elastream.engines.spark.arrow_ipc import from_bytes

    return {
        "number": letter.number,
        "time": datetime.fromtimestamp(letter.time).astimezone().isoformat(timespec="seconds"),
        "operator": letter.operator,
        "error": letter.error,
        "events": from_bytes(letter.data).to_pylist(),
    }


def _first_line(error: str) -> str:
    return error.partition("\n")[0]
