"""`elastream backtest`: how good each model would have been on a trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.options import (
    FillGaps,
    TraceName,
    Trained,
)

if TYPE_CHECKING:
    from elastream.predictors.backtest import Backtest

ERRORS = ["MAE", "RMSE", "MAPE %", "covered", "pinball", "ms", "fallbacks"]


def backtest(
    trace: TraceName,
    models: Annotated[str, typer.Option(help="Names separated by commas, or 'all'.")] = "all",
    horizon: Annotated[int, typer.Option(help="How many samples ahead.")] = 6,
    look_back: Annotated[int, typer.Option(help="How many samples each forecast sees.")] = 100,
    origins: Annotated[
        int, typer.Option(help="How many forecasts at most, evenly spread over the trace.")
    ] = 200,
    trained: Trained = None,
    fill_gaps: FillGaps = False,
    out: Annotated[Path | None, typer.Option(help="Draw forecast against truth here.")] = None,
) -> None:
    """Forecast a trace from many points in time, and measure the errors.

    For comparison, it also shows yardsticks without a model: the last value,
    the mean of 12 samples, and, if the trace is long enough, the same time a day
    and a week before.
    """
    from elastream.cli.choices import chosen_models
    from elastream.cli.render.table import table
    from elastream.predictors.backtest import backtest as run
    from elastream.predictors.backtest import rolling_origins
    from elastream.predictors.cards import CARDS
    from elastream.predictors.yardsticks import yardsticks
    from elastream.workloads.choice import chosen_trace

    recorded = chosen_trace(trace, fill_gaps=fill_gaps)
    predictors = chosen_models(models, trained or ())
    predictors += yardsticks(recorded.step, len(recorded.values))
    rounds = len(rolling_origins(len(recorded.values), horizon, look_back, origins))
    total = rounds * len(predictors)
    with typer.progressbar(length=total, label="backtest", file=sys.stderr) as bar:
        results = [
            run(
                predictor,
                recorded.values,
                horizon,
                history=look_back,
                most_origins=origins,
                after_each=lambda: bar.update(1),
            )
            for predictor in predictors
        ]
    results.sort(key=lambda result: result.rmse)
    typer.echo(table(["model", *ERRORS], [_row(result) for result in results], numbers=ERRORS))
    told = f"{rounds} forecasts each, {look_back} samples in, {horizon} out; best RMSE first"
    typer.echo(f"{told}; in brackets what a model must beat")
    missing = [name for name, card in CARDS.items() if not card.installed]
    if models == "all" and missing:
        typer.echo(f"not installed: {', '.join(missing)}; 'elastream models' names their extras")
    if out is not None:
        from elastream.cli.render.plots import draw_backtest

        typer.echo(f"drawn in {draw_backtest(recorded, results, out)}")


def _row(result: Backtest) -> list[str]:
    errors = [f"{value:,.2f}" for value in (result.mae, result.rmse, result.mape)]
    held = "-" if result.coverage is None else f"{result.coverage:.1%}"
    lost = "-" if result.pinball is None else f"{result.pinball:,.2f}"
    return [result.model, *errors, held, lost, f"{result.decision_ms:.2f}", str(result.fallbacks)]
