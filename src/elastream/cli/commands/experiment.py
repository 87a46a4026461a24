"""`elastream experiment`: the papers' evaluations as commands."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.options import FillGaps, is_given
from elastream.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from elastream.experiments.base import Experiment, Inputs, Outcome

app = typer.Typer(
    help="Repeat the papers' evaluations, in the simulator or on Spark.", no_args_is_help=True
)

Out = Annotated[Path, typer.Option(help="Where tables, figures and report.html go.")]
TraceOption = Annotated[
    list[str] | None,
    typer.Option(help="Run on a file instead of a shipped trace, as NAME=FILE; may be repeated."),
]
Speed = Annotated[
    float | None,
    typer.Option(
        help="Play traces this many times as fast; by default 1 in the simulator, and on Spark "
        "what 'elastream experiment list' says."
    ),
]
Scale = Annotated[
    float, typer.Option(help="Multiply the events, and divide their execution times, by this.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same figures.")]
OUT = Path("out/experiments")
FRONTIER = "frontier"
PAPERS_ONLY = ("engine", "speed", "scale", "row", "runs", "grouping")
"""Options of the papers' evaluations that the frontier does not have."""


class EngineName(StrEnum):
    """What experiments run on."""

    SIMULATION = "simulation"
    SPARK = "spark"


@app.command("list")
def show() -> None:
    """List the experiments, and the traces that each runs on."""
    from elastream.cli.render.table import table
    from elastream.experiments import EXPERIMENTS

    found = [EXPERIMENTS[name]() for name in EXPERIMENTS]
    rows = [
        [
            each.name,
            ", ".join(each.traces),
            str(len(each.rows)),
            _on_spark(each),
            _description(each),
        ]
        for each in found
    ]
    rows.append(
        [
            FRONTIER,
            "all, or --trace",
            "-",
            "-",
            "slo and the papers' policies: cost against latency",
        ]
    )
    head = ["name", "traces", "rows", "on Spark", "what it compares"]
    typer.echo(table(head, rows, numbers=["rows", "on Spark"]))


@app.command()
def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A name from 'elastream experiment list'.")],
    out: Out = OUT,
    trace: TraceOption = None,
    fill_gaps: FillGaps = False,
    seed: Seed = 0,
    engine: Annotated[
        EngineName, typer.Option(help="What runs it. Spark runs in real time.")
    ] = EngineName.SIMULATION,
    speed: Speed = None,
    scale: Scale = 1.0,
    row: Annotated[
        list[str] | None, typer.Option(help="Run this row alone; may be repeated.")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="How many runs every row has; by default as many as were published."),
    ] = None,
    grouping: Annotated[
        str | None,
        typer.Option(help="Give all operators this grouping: shuffle, load-aware, osg, ..."),
    ] = None,
) -> None:
    """Run one experiment, and compare measured with published figures.

    On Spark, every run is kept as soon as it is done: if you stop the
    experiment, the same command continues with the missing runs. Experiments
    that have runs in common share them.

    bgelasor-4-5 needs --scale 0.05 on Spark: its load has more events than a
    small machine can take. The authors' file has gaps, so it also needs
    --fill-gaps.
    """
    if name == FRONTIER:
        _refuse_for_frontier(context)
        _frontier(trace or [], seed, fill_gaps, out / FRONTIER)
        return
    from elastream.experiments import EXPERIMENTS
    from elastream.experiments.tables import markdown

    if name not in EXPERIMENTS:
        raise UnknownNameError("experiment", name, [*EXPERIMENTS, FRONTIER])
    found = EXPERIMENTS[name]()
    if row:
        found = found.only(row)
    if engine is EngineName.SPARK and speed is None:
        speed = found.spark_speed
    inputs = replace(
        _inputs(trace or [], seed, fill_gaps, speed, scale), runs=runs, grouping=grouping
    )
    _check_out(out)
    if engine is EngineName.SPARK:
        outcome = _run_on_spark(found, inputs, out)
    else:
        (outcome,) = _run([found], inputs, out)
    typer.echo(markdown(outcome))


@app.command("all")
def everything(
    out: Out = OUT,
    trace: TraceOption = None,
    fill_gaps: FillGaps = False,
    seed: Seed = 0,
    training: Annotated[
        bool,
        typer.Option("--training", help="Also run those that train models, which takes minutes."),
    ] = False,
) -> None:
    """Run all experiments, and write one report."""
    from elastream.experiments import EXPERIMENTS

    found = [EXPERIMENTS[name]() for name in EXPERIMENTS]
    chosen = [experiment for experiment in found if training or not experiment.trains]
    inputs = _inputs(trace or [], seed, fill_gaps)
    _check_out(out)
    _run(chosen, inputs, out)


def _check_out(folder: Path) -> None:
    """Before hours of work, not after them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"--out {folder}: cannot be written: {error.strerror}") from None


def _refuse_for_frontier(context: typer.Context) -> None:
    """It has its own engine, clocks and rows: what would change nothing is refused."""
    given = [name for name in PAPERS_ONLY if is_given(context, name)]
    if given:
        raise InvalidInputError(
            f"--{', --'.join(given)}: {FRONTIER!r} does not take "
            f"{'it' if len(given) == 1 else 'them'}; it takes --trace, --seed, --fill-gaps and "
            "--out"
        )


def _frontier(options: list[str], seed: int, fill_gaps: bool, out: Path) -> None:
    """All contenders on every trace, or on the given ones, whatever their names."""
    from elastream.experiments import frontier
    from elastream.workloads import TRACES
    from elastream.workloads.choice import chosen_trace

    named = [option.partition("=") for option in options]
    for name, equals, file in named:
        if not (name and equals and file):
            raise InvalidInputError(f"--trace {name}{equals}{file}: must be NAME=FILE")
        if Path(name).name != name:
            raise InvalidInputError(f"--trace {name}={file}: NAME names a picture, so it has no /")
        if [each for each, _, _ in named].count(name) > 1:
            raise InvalidInputError(f"--trace {name}={file}: give every trace a name of its own")
    files = {name: file for name, _, file in named} or {name: name for name in TRACES}
    traces = {name: chosen_trace(file, seed, fill_gaps) for name, file in files.items()}
    silent = [name for name, trace in traces.items() if not frontier.prepared(trace).values.any()]
    if silent:
        raise InvalidInputError(
            f"--trace {silent[0]}={files[silent[0]]}: no events in the first {frontier.LONGEST} s"
        )
    _check_out(out)
    chosen = frontier.contenders()
    total = sum(frontier.steps(trace, chosen) for trace in traces.values())
    found = []
    with typer.progressbar(length=total, label=FRONTIER, file=sys.stderr) as bar:
        for name, trace in traces.items():
            found.append(frontier.measured(name, trace, chosen, bar.update, seed))
            frontier.draw(found[-1], out / f"{name}.png")
    table = frontier.markdown(found)
    (out / "table.md").write_text(table, encoding="utf-8")
    typer.echo(table)
    typer.echo(f"pictures in {out}", err=True)


def _on_spark(experiment: Experiment) -> str:
    """How long it takes there, and how fast its traces are played."""
    from elastream.experiments.base import Inputs
    from elastream.experiments.on_spark import SparkExperiment

    if experiment.spark_speed is None:
        return "-"
    inputs = Inputs(speed=experiment.spark_speed)
    cells = SparkExperiment.of(experiment, inputs, Path()).cells
    minutes = sum(cell.seconds for cell in cells) / 60
    return f"{minutes:.0f} min at speed {experiment.spark_speed:g}"


def _description(experiment: Experiment) -> str:
    return experiment.title + (" (trains for minutes)" if experiment.trains else "")


def _run(experiments: list[Experiment], inputs: Inputs, out: Path) -> list[Outcome]:
    from elastream.experiments.report import write_outcome, write_report

    outcomes = []
    for experiment in experiments:
        total = experiment.steps(inputs)
        with typer.progressbar(length=total, label=experiment.name, file=sys.stderr) as bar:
            outcomes.append(experiment.run(inputs, bar.update))
        write_outcome(outcomes[-1], out / experiment.name)
    typer.echo(f"report in {write_report(outcomes, out)}", err=True)
    return outcomes


def _run_on_spark(experiment: Experiment, inputs: Inputs, out: Path) -> Outcome:
    """What was measured on Spark, and what the simulator says about the same runs."""
    from elastream.experiments.cells import commit
    from elastream.experiments.on_spark import SparkCell, SparkExperiment
    from elastream.experiments.report import write_outcome, write_report

    folder = out / "spark"
    asked = SparkExperiment.of(experiment, inputs, folder / "cells")
    cells, missing = asked.cells, asked.missing
    if len(missing) < len(cells):
        typer.echo(f"{len(cells) - len(missing)} of {len(cells)} runs are already done", err=True)
    total = sum(cell.runs.intervals for cell in missing)
    minutes = sum(cell.seconds for cell in missing) / 60
    if missing:
        typer.echo(f"{len(missing)} runs on Spark, about {minutes:.0f} minutes", err=True)
    with typer.progressbar(length=total, label=experiment.name, file=sys.stderr) as bar:
        begun = iter(range(len(cells) - len(missing) + 1, len(cells) + 1))

        def begin(cell: SparkCell) -> None:
            bar.label = f"{experiment.name}: {cell.row} ({next(begun)} of {len(cells)})"
            bar.render_progress()

        outcome = asked.run(bar.update, begin)
    others = {each for result in outcome.results for each in result.commits} - {commit()}
    if others:
        typer.echo(
            f"some runs were made with other code ({', '.join(sorted(others))}): remove their "
            f"files from {asked.folder} to run them again",
            err=True,
        )
    typer.echo("the same in the simulator ...", err=True)
    outcome = replace(outcome, simulated=asked.simulated())
    write_outcome(outcome, folder / experiment.name)
    typer.echo(f"report in {write_report([outcome], folder)}", err=True)
    return outcome


def _inputs(
    options: list[str],
    seed: int,
    fill_gaps: bool,
    speed: float | None = None,
    scale: float = 1.0,
) -> Inputs:
    from elastream.experiments.base import Inputs
    from elastream.workloads import TRACES

    files = {}
    for option in options:
        name, equals, file = option.partition("=")
        if not (equals and file and name in TRACES):
            raise InvalidInputError(
                f"--trace {option}: must be NAME=FILE, where NAME is one of {', '.join(TRACES)}"
            )
        files[name] = file
    return Inputs(files, seed, fill_gaps, 1.0 if speed is None else speed, scale)
