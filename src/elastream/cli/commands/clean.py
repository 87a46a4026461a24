"""`elastream clean`: remove the state of a run that nobody will resume."""

from __future__ import annotations

from typing import Annotated

import typer

from elastream.errors import InvalidInputError


def clean(
    state: Annotated[str, typer.Argument(help="The state of a run: a folder or a URL.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove the state of a run, with all waiting events and dead letters."""
    from elastream.engines.spark.backends import open_backend

    backend = open_backend(state)
    if not backend.exists:
        raise InvalidInputError(f"{state}: no run has used this state; name the state of a run")
    if not yes:
        backend.check_removable()
        typer.confirm(f"remove {backend.url}, and every event that waits in it?", abort=True)
    removed = backend.remove()
    typer.echo("\n".join(f"removed {name}" for name in removed) or "there is nothing to remove")
