"""`elastream top`: the live table of a running pipeline, from another terminal."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elastream.core.health import RUNNING, Health, State
from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.live import Live

    from elastream.cli.stream_client import StreamClient

PAUSE_SECONDS = 1.0


def top(
    url: Annotated[
        str, typer.Argument(help="What 'elastream run --serve' showed.")
    ] = "http://127.0.0.1:8888",
) -> None:
    """Watch a pipeline that runs with --serve, until it ends or Ctrl-C."""
    from rich.console import Console
    from rich.live import Live

    from elastream.cli.stream_client import LostError, StreamClient

    client = StreamClient(url)
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
    """Until the run is over; a connection that breaks is made again."""
    from elastream.cli.render.live_table import of_sample
    from elastream.cli.stream_client import LostError

    pools = {operator["name"]: operator["pool"] for operator in pipeline["operators"]}
    settings: dict[str, Any] = {}
    sample: dict[str, Any] | None = None
    health = RUNNING

    def show(note: str) -> None:
        if sample is not None:
            live.update(of_sample(pipeline["name"], pools, sample, note, health), refresh=True)

    while True:
        try:
            for event in client.events():
                if event.kind == "end":
                    return
                if event.kind == "sample":
                    sample = event.content
                elif event.kind == "settings":
                    settings = event.content
                elif event.kind == "health":
                    health = Health(State(event.content["state"]), event.content["why"])
                show(_state(settings))
        except LostError as error:
            show(f"connection lost ({error}), trying again")
        sleep(PAUSE_SECONDS)


def _state(settings: dict[str, Any]) -> str:
    """How the pipeline is run, in a few words."""
    state = f"{settings['policy']} with {settings['predictor']}"
    for field, word in (("paused", "paused"), ("advice_only", "advice only"), ("stopping", "ends")):
        if settings[field]:
            state += f", {word}"
    return state
