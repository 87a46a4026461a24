"""Plots of runs, backtests and traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elastream.figures import new_figure, save

if TYPE_CHECKING:
    from elastream.control.run import Result
    from elastream.predictors.backtest import Backtest
    from elastream.workloads.traces import Trace

INPUT, FORECAST, OUTPUT = "0.6", "#c8500a", "#1f5fa8"


def draw_run(result: Result, file: Path) -> Path:
    """Draw input and forecast, throughput, replicas, queues and latency; returns the file."""
    figure = new_figure(11, 11)
    panels = figure.subplots(5, 1, sharex=True)
    ends = np.array([cycle.time for cycle in result.cycles])
    td = result.run.td
    _input(panels[0], result, ends, td)
    _throughput(panels[1], result, ends, td)
    _replicas(panels[2], result, ends)
    _queues(panels[3], result, ends)
    _latency(panels[4], result, ends)
    for axes in panels:
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
        axes.legend(loc="upper right", ncols=4, frameon=False, fontsize=8)
    panels[-1].set_xlabel("seconds")
    run = result.run
    figure.suptitle(
        f"{run.application.topology.name}: {run.policy.name} with {run.predictor.name}",
        x=0.01,
        ha="left",
    )
    return save(figure, file)


def _input(axes: Any, result: Result, ends: Any, td: float) -> None:
    trace = result.run.trace
    seconds = trace.times - trace.times[0]
    axes.plot(seconds, trace.rates, color=INPUT, linewidth=2, label="input")
    rates = [np.nan if guess is None else guess / td for guess in result.forecasts]
    _steps(axes, ends, rates, FORECAST, "forecast of the interval")
    axes.set_title("input (events/s)", loc="left", fontsize=10)


def _throughput(axes: Any, result: Result, ends: Any, td: float) -> None:
    last = result.run.application.topology.terminals
    arrived = [sum(stats.samples) / td for stats in result.stats]
    left = [sum(stats.operators[name].processed for name in last) / td for stats in result.stats]
    _steps(axes, ends, arrived, INPUT, "arrived")
    _steps(axes, ends, left, OUTPUT, "processed to the end")
    axes.set_title("throughput (events/s)", loc="left", fontsize=10)


def _replicas(axes: Any, result: Result, ends: Any) -> None:
    totals = [sum(of.active for of in stats.operators.values()) for stats in result.stats]
    _steps(axes, ends, totals, OUTPUT, "active")
    pools = sum(operator.pool for operator in result.run.application.topology.operators)
    axes.axhline(pools, color=INPUT, linestyle=":", label="deployed")
    axes.set_title("replicas, all operators", loc="left", fontsize=10)


def _queues(axes: Any, result: Result, ends: Any) -> None:
    for name in result.run.application.topology.by_name:
        axes.plot(ends, [s.operators[name].queued for s in result.stats], label=name, linewidth=1)
    held = [sum(source.queued for source in stats.sources.values()) for stats in result.stats]
    if any(held):
        axes.plot(ends, held, color=INPUT, label="held back at the source")
    axes.set_title("queued at the end of the interval (events)", loc="left", fontsize=10)


def _latency(axes: Any, result: Result, ends: Any) -> None:
    seen = [stats.latency for stats in result.stats]
    for share, colour in (("p99", FORECAST), ("mean", OUTPUT)):
        values = [1000 * getattr(each, share) if each else np.nan for each in seen]
        _steps(axes, ends, values, colour, share)
    axes.set_title("latency (ms)", loc="left", fontsize=10)


def _steps(axes: Any, ends: Any, values: Any, colour: str, label: str) -> None:
    """One level per interval."""
    edges = np.concatenate([[0.0], ends])
    axes.stairs(values, edges, baseline=None, color=colour, linewidth=1.4, label=label)


def draw_backtest(trace: Trace, results: Sequence[Backtest], folder: Path) -> Path:
    """Draw forecast against truth, a panel per model, as `backtest.png`; returns the file."""
    figure = new_figure(11, 1.2 + 1.9 * len(results))
    panels = figure.subplots(len(results), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    seconds = trace.times - trace.times[0]
    top = 1.3 * float(trace.values.max()) or 1.0
    for axes, result in zip(panels, results, strict=True):
        axes.plot(seconds, trace.values, color=INPUT, linewidth=2, label="truth")
        for origin, values in zip(result.origins, result.forecasts, strict=True):
            when = seconds[origin : origin + len(values)]
            label = "forecast" if origin == result.origins[0] else None
            axes.plot(when, values, color=FORECAST, linewidth=1, label=label)
        axes.set_title(f"{result.model}: RMSE {result.rmse:,.1f}", loc="left", fontsize=10)
        # A wild forecast would flatten all the others; it leaves the panel instead.
        axes.set_ylim(0, top)
    panels[0].legend(loc="upper right", ncols=2, frameon=False)
    figure.supxlabel("seconds from the start")
    figure.supylabel("events per sample")
    return save(figure, folder / "backtest.png")


def draw_traces(traces: Mapping[str, Trace], target: Path) -> Path:
    """Draw input rates over time, a panel per trace; returns the file."""
    rows = -(-len(traces) // 2) if len(traces) > 1 else 1
    columns = 2 if len(traces) > 1 else 1
    figure = new_figure(11, 1.0 + 1.7 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (name, trace) in zip(panels, traces.items(), strict=False):
        unit, label = (1.0, "s") if trace.duration < 10_000 else (86_400.0, "days")
        axes.plot((trace.times - trace.times[0]) / unit, trace.rates, color=OUTPUT, linewidth=0.9)
        axes.set_title(f"{name} ({label})", loc="left", fontsize=10)
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
    for axes in list(panels)[len(traces) :]:
        axes.set_axis_off()
    figure.supylabel("events per second")
    return save(figure, target)
