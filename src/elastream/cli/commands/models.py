"""`elastream models`: the forecasting models."""

from __future__ import annotations

import typer

NOTE = """
auto is the default. Those with a path are trained first: 'elastream train' writes the file, and
--trained NAME=FILE names it."""


def models() -> None:
    """List the forecasting models, the paper of each, its parameters and what it needs."""
    from elastream.cli.render.table import table
    from elastream.predictors.cards import CARDS, parameters

    rows = [
        [
            name,
            card.paper,
            ", ".join(_parameter(*item) for item in parameters(name).items()) or "-",
            card.extra or "-",
            "yes" if card.installed else f"no: pip install 'elastream[{card.extra}]'",
        ]
        for name, card in CARDS.items()
    ]
    typer.echo(table(["name", "paper", "parameters", "extra", "installed"], rows))
    typer.echo(NOTE)


def _parameter(name: str, default: object) -> str:
    return name if default is None else f"{name}={default}"
