"""What a run measured, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from elastream.cli.render.logs import tell
from elastream.cli.render.table import table
from elastream.control.run import Result
from elastream.core.metrics import RunMetrics


def show(result: Result, as_json: bool, picture: Path | None, warm_up: float | None = None) -> None:
    """Print the measures, as a table or as one JSON object, and draw the run if asked to."""
    measured = result.metrics
    if as_json:
        values = {**measured.as_dict(), "events_set_aside": result.problems.set_aside}
        if warm_up is not None:
            values["warm_up_seconds"] = round(warm_up, 3)
        typer.echo(json.dumps(values, allow_nan=False))
    else:
        typer.echo(table(["measure", "value"], _rows(measured), numbers=["value"]))
    if picture is not None:
        from elastream.cli.render.plots import draw_run

        drawn = f"drawn in {draw_run(result, picture)}"
        if as_json:
            tell(drawn)
        else:
            typer.echo(drawn)


def _rows(measured: RunMetrics) -> list[list[str]]:
    """Names for people; a dash where there is nothing to measure."""
    values: dict[str, Any] = measured.as_dict()
    latency = values.pop("latency_ms") or dict.fromkeys(("mean", "p50", "p95", "p99"))
    rows = []
    for name, value in values.items():
        text = "-" if value is None else f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
        whole = name in ("rescales", "events_in", "events_out")
        rows.append([name.replace("_", " "), f"{value:,.0f}" if whole else text])
        if name == "processed_ratio":
            rows += [
                [f"latency {part}", "-" if ms is None else f"{ms:,.1f} ms"]
                for part, ms in latency.items()
            ]
    return rows
