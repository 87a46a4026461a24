"""`elastream demo`: one pipeline that scales itself, beside two that do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from elastream.experiments.runs import Result, Run

FEWEST, MOST = 1, 8
SHOWN_DECISIONS = 6


def demo(
    out: Annotated[Path, typer.Option(help="Where to draw the run and keep its history.")] = Path(
        "out/demo"
    ),
) -> None:
    """Run the Twitter application under a spiky load, scaled by PA-SPS and with fixed replicas."""
    from elastream.cli.run_plot import draw
    from elastream.control.history import History

    out.mkdir(parents=True, exist_ok=True)
    file = out / "history.db"
    file.unlink(missing_ok=True)
    history = History(file)
    typer.echo("Simulating 22 minutes of tweets through four operators, three times over.\n")
    with typer.progressbar(length=3, label="simulate", file=sys.stderr) as bar:
        elastic = _run("pa-sps", FEWEST).simulate(after_each=history.record)
        results = {"PA-SPS, forecast by lr": elastic}
        bar.update(1)
        for count in (FEWEST, MOST):
            results[f"fixed at {count}"] = _run("static", count, replicas=count).simulate()
            bar.update(1)
    history.close()
    _compare(results)
    _explain(elastic)
    typer.echo(f"\nThe run, drawn:      {draw(elastic, out / 'simulation.png')}")
    typer.echo(f"Every decision:      elastream history {file}")


def _run(policy: str, initial: int, **parameters: int) -> Run:
    """The Twitter application on the spiky trace, from so many replicas of each operator on."""
    from elastream.engines.simulation import SimulationSettings
    from elastream.experiments.runs import Run
    from elastream.policies import POLICIES
    from elastream.predictors import PREDICTORS
    from elastream.workloads import APPLICATIONS, TRACES

    application, trace = APPLICATIONS["twitter"](pool=MOST), TRACES["spiky"]()
    settings = SimulationSettings(initial=dict.fromkeys(application.topology.by_name, initial))
    chosen = POLICIES[policy](**parameters)
    return Run(application, trace, chosen, PREDICTORS["lr"](), settings=settings)


def _compare(results: dict[str, Result]) -> None:
    from elastream.cli.table import table

    header = ["replicas", "saved", "processed", "mean latency", "p99", "replica-hours", "changes"]
    rows = []
    for name, result in results.items():
        measured = result.metrics
        latency = measured.latency_ms
        rows.append(
            [
                name,
                f"{measured.saved_resources:.0%}",
                f"{measured.processed_ratio:.1%}",
                f"{latency.mean:,.0f} ms" if latency else "-",
                f"{latency.p99:,.0f} ms" if latency else "-",
                f"{measured.replica_seconds / 3600:.1f}",
                f"{measured.rescales}",
            ]
        )
    typer.echo(table(header, rows, numbers=header[1:]))


def _explain(result: Result) -> None:
    changes = [(cycle.time, change) for cycle in result.cycles for change in cycle.changes]
    typer.echo(f"\nThe first {SHOWN_DECISIONS} of {len(changes)} decisions:")
    for time, change in changes[:SHOWN_DECISIONS]:
        typer.echo(f"{time:7,.0f} s  {change}")
