"""What a run measured, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from elastream.cli.render.logs import report
from elastream.cli.render.table import table
from elastream.control.run import Result
from elastream.core.latency import LatencyHistogram
from elastream.policies.slo import Slo


def show(
    result: Result,
    as_json: bool,
    picture: Path | None,
    set_aside: float = 0.0,
    warm_up: float | None = None,
) -> None:
    """Print the measures, as a table or as one JSON object, and draw the run if asked to.

    Args:
        result: The run.
        as_json: Whether it is for a program.
        picture: Where to draw it.
        set_aside: Events that failed, including those after the last interval.
        warm_up: How long it took until everything was ready, in seconds.
    """
    measured = {**result.metrics.as_dict(), "events_set_aside": set_aside}
    if as_json:
        values = dict(measured)
        if warm_up is not None:
            values["warm_up_seconds"] = round(warm_up, 3)
        typer.echo(json.dumps(values, allow_nan=False))
    else:
        typer.echo(table(["measure", "value"], _rows(measured), numbers=["value"]))
    missed = missed_objective(result)
    if missed is not None:
        report(missed)
    if picture is not None:
        from elastream.cli.render.plots import draw_run

        drawn = f"drawn in {draw_run(result, picture)}"
        if as_json:
            report(drawn)
        else:
            typer.echo(drawn)


def missed_objective(result: Result) -> str | None:
    """By how much a run missed the objective of `slo`, and where a larger pool may help."""
    policy = result.run.policy
    seen = [of.latency.histogram for of in result.stats if of.latency and of.latency.histogram]
    if not isinstance(policy, Slo) or not seen:
        return None
    took = LatencyHistogram.sum(seen).quantile(policy.quantile)
    if took <= policy.objective:
        return None
    at = f"p{100 * policy.quantile:g}"
    told = f"{at} was {1000 * took:,.0f} ms: the objective of {1000 * policy.objective:,g} ms"
    full = {
        name: sum(of.operators[name].active >= operator.pool for of in result.stats)
        for name, operator in result.topology.by_name.items()
    }
    fullest = max(full, key=lambda name: full[name])
    if not full[fullest]:
        return f"{told} was missed"
    share = full[fullest] / len(result.stats)
    return (
        f"{told} was missed; every replica of {fullest!r} was active for {share:.0%} of the time: "
        "a larger pool may help"
    )


def _rows(measured: Mapping[str, Any]) -> list[list[str]]:
    """Names for people; a dash where there is nothing to measure."""
    values = dict(measured)
    latency = values.pop("latency_ms") or dict.fromkeys(("mean", "p50", "p95", "p99"))
    rows = []
    for name, value in values.items():
        text = "-" if value is None else f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
        whole = name in ("rescales", "events_in", "events_out", "events_set_aside")
        rows.append([name.replace("_", " "), f"{value:,.0f}" if whole else text])
        if name == "processed_ratio":
            rows += [
                [f"latency {part}", "-" if ms is None else f"{ms:,.1f} ms"]
                for part, ms in latency.items()
            ]
    return rows
