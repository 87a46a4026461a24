"""Forecast against truth, one panel per model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elastream.figures import new_figure, save
from elastream.predictors.backtest import Backtest
from elastream.workloads.traces import Trace

TRUTH_COLOUR, FORECAST_COLOUR = "0.65", "#c8500a"


def draw(trace: Trace, results: Sequence[Backtest], folder: Path) -> Path:
    """Write `backtest.png` into the folder, and say where it is."""
    figure = new_figure(11, 1.2 + 1.9 * len(results))
    panels = figure.subplots(len(results), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    seconds = trace.times - trace.times[0]
    top = 1.3 * float(trace.values.max()) or 1.0
    for axes, result in zip(panels, results, strict=True):
        axes.plot(seconds, trace.values, color=TRUTH_COLOUR, linewidth=2, label="truth")
        for origin, values in zip(result.origins, result.forecasts, strict=True):
            when = seconds[origin : origin + len(values)]
            label = "forecast" if origin == result.origins[0] else None
            axes.plot(when, values, color=FORECAST_COLOUR, linewidth=1, label=label)
        axes.set_title(f"{result.model}: RMSE {result.rmse:,.1f}", loc="left", fontsize=10)
        # A wild forecast would flatten all the others; it leaves the panel instead.
        axes.set_ylim(0, top)
    panels[0].legend(loc="upper right", ncols=2, frameon=False)
    figure.supxlabel("seconds from the start")
    figure.supylabel("events per sample")
    return save(figure, folder / "backtest.png")
