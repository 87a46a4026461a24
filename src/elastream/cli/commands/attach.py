"""`elastream attach`: run your program unchanged, and scale its streaming queries."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from elastream.cli.options import (
    LOOPBACK,
    PORT,
    Host,
    PolicyName,
    Port,
    PredictorName,
    Serve,
    Trained,
    refuse_without,
)
from elastream.cli.render.logs import LogFormat, LogFormatOption, set_up_own_logs
from elastream.errors import InvalidInputError


def attach(
    context: typer.Context,
    program: Annotated[Path, typer.Argument(help="A Python program that starts queries.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The program's own arguments, after --.")
    ] = None,
    executors: Annotated[str, typer.Option(help="The minimum and the maximum, as 1:8.")] = "1:8",
    policy: PolicyName = "deadline",
    predictor: PredictorName = "auto",
    latency: Annotated[
        float, typer.Option(help="The latency to keep without a trigger interval, in seconds.")
    ] = 10.0,
    target: Annotated[
        float, typer.Option(help="The share of its interval that a batch may take, 0 to 1.")
    ] = 0.65,
    td: Annotated[
        float | None,
        typer.Option(help="How often to decide, in seconds; by default half the trigger interval."),
    ] = None,
    guard: Annotated[
        list[str] | None,
        typer.Option(help="One more limit on the policy, such as cooldown:up=10,down=60."),
    ] = None,
    advice_only: Annotated[
        bool, typer.Option("--advice-only", help="Only say what would be done.")
    ] = False,
    history: Annotated[
        Path | None, typer.Option(help="Keep every decision in this folder, a file per query.")
    ] = None,
    trained: Trained = None,
    serve: Serve = False,
    host: Host = LOOPBACK,
    port: Port = PORT,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run a program, and scale the executors of the streaming queries that it starts."""
    from elastream.cli.attached_run import AttachedRun
    from elastream.cli.choices import chosen_model, executors_from, guard_from, trained_files
    from elastream.running.attach import USUAL_GUARDS, check_wishes
    from elastream.running.choices import chosen_policy
    from elastream.running.service import RunService

    set_up_own_logs(log_format)
    refuse_without(context, "serve", "host", "port")
    if not program.is_file():
        raise InvalidInputError(f"{program}: there is no such program")
    check_wishes(executors_from(executors), latency, target, td)
    if serve:  # The page is there with the first query; that the address can be had shows now.
        RunService.at(host, port).close()
    wishes = {
        "policy": chosen_policy(policy),
        "predictor": chosen_model(predictor, trained or ()),
        "latency": latency,
        "target": target,
        "td": td,
        "guards": [*USUAL_GUARDS, *map(guard_from, guard or ())],
        "advice_only": advice_only,
        "serve": f"{host}:{port}" if serve else False,
        "trained": trained_files(trained or ()),
    }
    sys.argv = [str(program), *(arguments or ())]
    sys.path.insert(0, str(program.resolve().parent))
    try:
        with AttachedRun(executors_from(executors), history, wishes):
            runpy.run_path(str(program), run_name="__main__")
    except Exception as error:
        # The program's own, whatever it is: neither the command line nor we know what it means.
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)
