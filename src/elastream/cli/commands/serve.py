"""`elastream serve`: the predictors over REST."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from elastream.cli.options import Trained
from elastream.cli.render.logs import LogFormat, LogFormatOption, report, set_up_logs


def serve(
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but loopback requires a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any free port.")] = 8888,
    models: Annotated[str, typer.Option(help="Names separated by commas, or 'all'.")] = "all",
    trained: Trained = None,
    timeout: Annotated[
        float,
        typer.Option(min=0.01, help="How many seconds a model may take before 'basic' stands in."),
    ] = 10.0,
    workers: Annotated[
        int, typer.Option(min=1, help="How many forecasts to make at the same time.")
    ] = 8,
    token: Annotated[
        str | None,
        typer.Option(envvar="ELASTREAM_TOKEN", help="The bearer token that requests must carry."),
    ] = None,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Serve forecasts over REST, until Ctrl-C."""
    from elastream.cli.choices import chosen_models
    from elastream.service import server
    from elastream.service.access import Access
    from elastream.service.api import create_app

    set_up_logs(log_format)
    given = {} if token is None else {"ELASTREAM_TOKEN": token}
    access = Access.at(host, {**os.environ, **given})
    predictors = {predictor.name: predictor for predictor in chosen_models(models, trained or ())}
    app = create_app(predictors, timeout=timeout, workers=workers, access=access)
    listening = server.listen(host, port)
    report(f"predictors at {server.url_of(listening)}", url=server.url_of(listening))
    server.serve(app, listening)
    report("stopped")
