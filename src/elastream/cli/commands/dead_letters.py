"""`elastream dead-letters`: events that operators could not process."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elastream.errors import InvalidInputError, UnknownNameError, without_numbers

if TYPE_CHECKING:
    from elastream.engines.spark.backends.dead_letters import DeadLetter, DeadLetters

MOST_ERRORS = 20
"""Errors often quote their event, so there may be as many as events."""


def dead_letters(
    state: Annotated[str, typer.Argument(help="The state of a run: a folder or a URL.")],
    operator: Annotated[str | None, typer.Option(help="Only those of this operator.")] = None,
    last: Annotated[int, typer.Option(min=0, help="How many to show, newest first.")] = 10,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every dead letter, one JSON object a line.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Put them back into their operators' queues.")
    ] = False,
) -> None:
    """Show the events that operators could not process, and why; or retry them."""
    from elastream.engines.spark.backends import open_backend

    backend = open_backend(state)
    if not backend.exists:
        raise InvalidInputError(f"{state}: no run has used this state; name the state of a run")
    known = backend.layout()
    if operator is not None and known and operator not in known:
        raise UnknownNameError(f"operator in {state}", operator, known)
    with backend.connect() as connection:
        letters = connection.dead_letters
        if retry:
            _retry(letters, operator)
        elif as_json:
            for letter in letters.read(operator):
                typer.echo(json.dumps(_readable(letter), default=str))
        else:
            _show(letters, operator, last)


def _retry(letters: DeadLetters, operator: str | None) -> None:
    count = letters.retry(list(letters.read(operator)))
    typer.echo(f"put back: {count} dead letters; those that fail again come back here")


def _show(letters: DeadLetters, operator: str | None, last: int) -> None:
    from elastream.cli.render.table import table

    events: Counter[tuple[str, str]] = Counter()
    for letter in letters.read(operator):
        events[letter.operator, without_numbers(letter.error)] += letter.events
    if not events:
        typer.echo("there are no dead letters")
        return
    rows = [[name, error, f"{count:,}"] for (name, error), count in events.most_common(MOST_ERRORS)]
    typer.echo(table(["operator", "error", "events"], rows, numbers=["events"]))
    if len(events) > MOST_ERRORS:
        typer.echo(f"and {len(events) - MOST_ERRORS:,} more errors")
    for letter in islice(letters.read(operator), last):
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
