"""`elastream predict`: one forecast from a file of samples."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from elastream.cli.options import (
    FillGaps,
    PredictorName,
    Trained,
)


def predict(
    samples: Annotated[
        Path, typer.Option(help="One number per line, or a CSV file with the header time,value.")
    ],
    model: PredictorName = "basic",
    horizon: Annotated[int, typer.Option(help="How many samples ahead.")] = 6,
    trained: Trained = None,
    fill_gaps: FillGaps = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Forecast the samples that follow those in a file."""
    from elastream.cli.choices import chosen_model
    from elastream.predictors.wire import to_wire
    from elastream.workloads.traces import load_samples

    predictor = chosen_model(model, trained or ())
    history = load_samples(samples, fill_gaps)
    started = perf_counter()
    forecast = predictor.predict(history, horizon)
    elapsed_ms = 1_000 * (perf_counter() - started)
    if as_json:
        typer.echo(json.dumps(to_wire(forecast, elapsed_ms)))
        return
    for value in forecast.values:
        typer.echo(f"{value:g}")
    if forecast.fallback is not None:
        typer.echo(f"{forecast.model} stood in: {forecast.fallback}", err=True)
