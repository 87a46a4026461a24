"""`elastream demo`: one pipeline that scales itself on Spark, beside two that do not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.render.logs import LogFormat, set_up_logs

if TYPE_CHECKING:
    from elastream.control.run import Result

SPEED, SCALE, SERVICE_MS, TD = 15.0, 0.2, 2.5, 5.0
"""22 minutes of tweets in 87 s, at rates that a small machine can carry, with some waiting each."""
FEWEST, MOST = 1, 4
SHOWN_DECISIONS = 8


def demo(
    out: Annotated[Path, typer.Option(help="Where to draw the run and keep its state.")] = Path(
        "out/demo"
    ),
) -> None:
    """Run the Twitter application on Spark under a spiky load, scaled by PA-SPS."""
    from elastream.cli.render.plots import draw_run
    from elastream.cli.spark_run import Place, run_on_spark
    from elastream.cli.targets import chosen_target
    from elastream.control.run import Run
    from elastream.policies import POLICIES
    from elastream.predictors import PREDICTORS
    from elastream.running.traces import trace as chosen_trace

    set_up_logs(LogFormat.TEXT)
    state = out / "state"
    shutil.rmtree(state, ignore_errors=True)
    trace = chosen_trace("spiky", speed=SPEED, scale=SCALE)
    target = chosen_target(None, "twitter", MOST, SERVICE_MS, state)
    policy, predictor = POLICIES["pa-sps"](), PREDICTORS["lr"]()
    asked = Run(target, trace, policy, predictor, TD, look_back=12)
    elastic, _ = run_on_spark(asked, target, Place(state))
    results = {"PA-SPS with lr, on Spark": elastic}
    for count in (FEWEST, MOST):
        results[f"fixed at {count}, simulated"] = _fixed(elastic, count)
    _compare(results)
    _explain(elastic)
    picture = draw_run(elastic, out / "run.png")
    typer.echo(f"\nThe run, drawn:   {picture}")
    typer.echo(f"Every decision:   elastream history {state / 'history.db'}")
    typer.echo(f"What it stored:   {state / 'twitter.db'}")


def _fixed(measured: Result, count: int) -> Result:
    """The same input in the simulator, with fixed replicas and the execution times of the run."""
    from elastream.control.run import Run
    from elastream.core.joining import joined
    from elastream.core.measured import measured_behaviour
    from elastream.engines.simulation import SimulationSettings
    from elastream.policies import POLICIES
    from elastream.workloads.applications import Application

    run = measured.run
    topology = measured.topology
    behaviour = measured_behaviour(topology, joined(measured.stats, 0))
    settings = SimulationSettings(initial=dict.fromkeys(topology.by_name, count))
    return Run(
        Application(topology, behaviour),
        run.trace,
        POLICIES["static"](replicas=count),
        run.predictor,
        run.td,
        settings=settings,
    ).simulate()


def _compare(results: dict[str, Result]) -> None:
    from elastream.cli.render.table import table

    header = ["", "saved", "processed", "mean latency", "p99", "replica-seconds", "changes"]
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
                f"{measured.replica_seconds:,.0f}",
                f"{measured.rescales}",
            ]
        )
    typer.echo("\n" + table(header, rows, numbers=header[1:]))


def _explain(result: Result) -> None:
    changes = [(cycle.time, change) for cycle in result.cycles for change in cycle.changes]
    typer.echo(f"\nThe first {SHOWN_DECISIONS} of {len(changes)} decisions:")
    for time, change in changes[:SHOWN_DECISIONS]:
        typer.echo(f"{time:7,.0f} s  {change}")
