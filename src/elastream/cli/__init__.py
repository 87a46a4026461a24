"""The command line: `elastream COMMAND`, one module per group of commands.

A command imports what it needs when it runs, so that `elastream --help` stays quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from elastream import __version__
from elastream.cli.commands.attach import attach
from elastream.cli.commands.backtest import backtest
from elastream.cli.commands.benchmark import benchmark
from elastream.cli.commands.clean import clean
from elastream.cli.commands.dead_letters import dead_letters
from elastream.cli.commands.demo import demo
from elastream.cli.commands.experiment import app as experiment
from elastream.cli.commands.explain import explain
from elastream.cli.commands.history import history
from elastream.cli.commands.learn import learn
from elastream.cli.commands.models import models
from elastream.cli.commands.policies import policies
from elastream.cli.commands.predict import predict
from elastream.cli.commands.run import run
from elastream.cli.commands.serve import serve
from elastream.cli.commands.simulate import simulate
from elastream.cli.commands.state import app as state
from elastream.cli.commands.top import top
from elastream.cli.commands.traces import traces
from elastream.cli.commands.train import train
from elastream.cli.render.logs import report_mistake
from elastream.errors import BackendUnavailableError, ElastreamError, EngineError

app = typer.Typer(
    name="elastream",
    help="Predictive, elastic stream processing on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"elastream {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options that every command shares."""


for command in (
    demo,
    run,
    attach,
    simulate,
    explain,
    top,
    history,
    dead_letters,
    clean,
    policies,
    traces,
    models,
    predict,
    backtest,
    benchmark,
    train,
    learn,
    serve,
):
    app.command()(command)
app.add_typer(experiment, name="experiment")
app.add_typer(state, name="state", no_args_is_help=True)


def main() -> None:
    """Run the command line: a user's mistake is one message and exit code 2; a failure, 1."""
    try:
        app()
    except ElastreamError as error:
        report_mistake(error)
        sys.exit(1 if isinstance(error, BackendUnavailableError | EngineError) else 2)
