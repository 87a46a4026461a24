"""`elastream top`: the live table of a running pipeline, from another terminal."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elastream.core.health import RUNNING, Health
from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.live import Live

    from elastream.cli.stream_client import StreamClient

PAUSE_SECONDS = 1.0


def top(
    url: Annotated[
        str, typer.Argument(help="The address that 'elastream run --serve' printed.")
    ] = "http://127.0.0.1:8888",
    token: Annotated[
        str | None,
        typer.Option(envvar="ELASTREAM_TOKEN", help="The token, if reading requires one."),
    ] = None,
) -> None:
    """Watch a pipeline that runs with --serve, until it ends or Ctrl-C."""
    from rich.console import Console
    from rich.live import Live

    from elastream.cli.stream_client import LostError, StreamClient

    client = StreamClient(url, token)
    try:
        pipeline = client.pipeline()
        with Live(console=Console(), auto_refresh=False) as live:
            _follow(client, pipeline, live)
    except LostError as error:
        raise InvalidInputError(
            f"{url}: no pipeline can be watched there: {error}; "
            "start one with 'elastream run --serve' and give the address that it shows"
        ) from None
    except KeyboardInterrupt:
        return
    typer.echo("the run is over")


def _follow(client: StreamClient, pipeline: dict[str, Any], live: Live) -> None:
    """Until the run is over; reconnects when the connection breaks."""
    from elastream.cli.stream_client import LostError

    newest: dict[str, Any] = {}
    while True:
        try:
            for kind, content in client.events():
                if kind == "end":
                    return
                newest[kind] = content
                _show(live, pipeline, newest, _state(newest["settings"]))
        except LostError as error:
            _show(live, pipeline, newest, f"connection lost ({error}), reconnecting")
        sleep(PAUSE_SECONDS)


def _show(live: Live, pipeline: dict[str, Any], newest: dict[str, Any], note: str) -> None:
    """The latest of everything from the service, once there is a sample."""
    from elastream.cli.render.live_table import of_sample

    if "sample" not in newest:
        return
    pools = {operator["name"]: operator["pool"] for operator in pipeline["operators"]}
    health = Health(**newest["health"]) if "health" in newest else RUNNING
    problems = _problems(newest["problems"]["failures"]) if "problems" in newest else ""
    table = of_sample(pipeline["name"], pools, newest["sample"], note, health, problems)
    live.update(table, refresh=True)


def _problems(failures: list[dict[str, Any]]) -> str:
    """What was set aside, in a line."""
    from elastream.control.problems import Failure, Problems

    counted = {Failure(of["operator"], of["error"]): of["events"] for of in failures}
    return str(Problems(failures=counted))


def _state(settings: dict[str, Any]) -> str:
    """The settings of the run, in a few words."""
    state = f"{settings['policy']} with {settings['predictor']}"
    for field, word in (("paused", "paused"), ("advice_only", "advice only"), ("stopping", "ends")):
        if settings[field]:
            state += f", {word}"
    return state
