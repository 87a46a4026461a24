"""`elastream history`: what a control loop measured and decided."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.control.history_reader import HistoryReader


def history(
    file: Annotated[Path, typer.Argument(help="The history that a run recorded.")],
    last: Annotated[int, typer.Option(min=1, help="How many cycles to show, from the end.")] = 20,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Every cycle, and what people changed, one JSON object a line."
        ),
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Every operator in every cycle, one row each.")
    ] = False,
) -> None:
    """Show the last cycles of a recorded run, or export all of them."""
    from elastream.control.history_reader import HistoryReader

    if as_json and as_csv:
        raise InvalidInputError("choose --json or --csv: they export different things")
    with closing(HistoryReader(file)) as recorded:
        if as_json:
            for entry in _entries(recorded):
                typer.echo(json.dumps(entry))
        elif as_csv:
            _write_csv(recorded)
        else:
            _show(recorded, last)


def _write_csv(recorded: HistoryReader) -> None:
    import csv

    writer = None
    for row in recorded.operators():
        if writer is None:
            writer = csv.DictWriter(sys.stdout, row.keys(), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)


def _show(recorded: HistoryReader, last: int) -> None:
    from elastream.cli.render.table import table

    header = ["time", "input/s", "expected/s", "model", "outcome", "p99", "changes"]
    rows = [_row(entry) for entry in _entries(recorded, last)]
    typer.echo(table(header, rows, numbers=["time", "input/s", "expected/s", "p99"]))


def _entries(recorded: HistoryReader, last: int | None = None) -> Iterator[dict[str, Any]]:
    """The cycles, each followed by what people changed before the next."""
    cycles = list(recorded.cycles() if last is None else recorded.cycles(last))
    # Those before the first cycle belong to it.
    first = cycles[0]["cycle"] - 1 if cycles else 0
    changes = deque(recorded.steering(first))
    for cycle in cycles:
        while changes and changes[0]["cycle"] < cycle["cycle"]:
            yield changes.popleft()
        yield cycle
    yield from changes


def _row(cycle: dict[str, Any]) -> list[str]:
    if "who" in cycle:
        return [
            f"{cycle['time']:,.0f} s",
            "-",
            "-",
            "-",
            "steered",
            "-",
            f"{cycle['who']}: {cycle['what']}",
        ]
    changes = [
        f"{c['operator']} {c['before']} -> {c['after']}: {c['reasons']}" for c in cycle["changes"]
    ]
    td = cycle["td"] or 1.0
    return [
        f"{cycle['time']:,.0f} s",
        "-" if cycle["input"] is None else f"{cycle['input'] / td:,.0f}",
        "-" if cycle["forecast"] is None else f"{cycle['forecast'] / td:,.0f}",
        cycle["model"] or "-",
        cycle["outcome"],
        "-" if cycle["latency_p99"] is None else f"{1000 * cycle['latency_p99']:,.0f} ms",
        " | ".join(changes) or cycle["note"] or "-",
    ]
