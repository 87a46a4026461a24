"""`elastream demo`: one pipeline on Spark, scaled by a latency objective, then by PA-SPS."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.render.logs import LogFormat, report, set_up_logs
from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.control.run import Result
    from elastream.policies import Policy
    from elastream.workloads.traces import Trace

SPEED, SCALE, SERVICE_MS, SECONDS = 15.0, 0.2, 2.5, 72.0
"""18 minutes of tweets in 72 s, without the calm end, at rates that a small machine can carry, with
some waiting each."""
OBJECTIVE = "500 ms"
PA_SPS_TD, PA_SPS_SAMPLE, PA_SPS_LOOK_BACK = 30 / SPEED, 5 / SPEED, 12
"""As published, at this speed: an interval of 30 s has six samples, and a forecast sees twelve."""
FEWEST, MOST = 1, 4
SHOWN_DECISIONS = 8
OURS, PA_SPS = f"slo, {OBJECTIVE}, with auto", "PA-SPS as published, with lr"
AS_PUBLISHED = (
    f"PA-SPS decides every 30 s of the trace, which are {PA_SPS_TD:g} s at this speed, from twelve "
    "samples of 5 s."
)


def demo(
    out: Annotated[Path, typer.Option(help="Where to draw the runs and keep their state.")] = Path(
        "out/demo"
    ),
) -> None:
    """Run the Twitter application on Spark under a spiky load: scaled by slo, then by PA-SPS."""
    from elastream.cli.render.plots import draw_comparison, draw_run
    from elastream.policies import POLICIES
    from elastream.policies.slo import slo
    from elastream.running.traces import trace as chosen_trace

    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out {out}: it is a file; name a folder")
    set_up_logs(LogFormat.TEXT)
    trace = chosen_trace("spiky", speed=SPEED, scale=SCALE, duration=SECONDS)
    report(f"1 of 2, {SECONDS:.0f} s: {OURS}")
    ours = _on_spark(trace, out / "state", slo(OBJECTIVE), "auto")
    report(f"2 of 2, {SECONDS:.0f} s, the same input: {PA_SPS}")
    theirs = _on_spark(
        trace,
        out / "pa-sps",
        POLICIES["pa-sps"](),
        "lr",
        td=PA_SPS_TD,
        sample=PA_SPS_SAMPLE,
        look_back=PA_SPS_LOOK_BACK,
    )
    both = {OURS: ours, PA_SPS: theirs}
    fixed = {f"fixed at {n}, simulated": _fixed(theirs, n) for n in (FEWEST, MOST)}
    _compare({f"{name}, on Spark": result for name, result in both.items()} | fixed)
    typer.echo(f"\n{AS_PUBLISHED}")
    _explain(ours)
    typer.echo(f"\nSide by side:     {draw_comparison(both, out / 'comparison.png')}")
    typer.echo(f"Ours, drawn:      {draw_run(ours, out / 'run.png')}")
    typer.echo(f"Every decision:   elastream history {out / 'state' / 'history.db'}")
    typer.echo(f"What it stored:   {out / 'state' / 'twitter.db'}")


def _on_spark(
    trace: Trace,
    state: Path,
    policy: Policy,
    predictor: str,
    td: float | None = None,
    sample: float = 1.0,
    look_back: int = 100,
) -> Result:
    """One run from the start, in its own session and state folder."""
    from elastream.cli import spark_run
    from elastream.cli.targets import chosen_target
    from elastream.control.run import Run
    from elastream.predictors import PREDICTORS

    shutil.rmtree(state, ignore_errors=True)
    target = chosen_target(None, "twitter", MOST, SERVICE_MS, state)
    length = policy.td if td is None else td
    asked = Run(target, trace, policy, PREDICTORS[predictor](), length, look_back)
    place = spark_run.Place(state, settings={"sample": sample})
    result, _ = spark_run.run_on_spark(asked, target, place)
    return result


def _fixed(measured: Result, count: int) -> Result:
    """The same input in the simulator, with fixed replicas and the execution times of the run."""
    from elastream.control.run import Run
    from elastream.core.behaviour import measured_behaviour
    from elastream.core.joining import joined
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
