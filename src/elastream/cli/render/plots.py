"""Plots of runs, backtests and traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elastream.control.expectation import BandQuality
from elastream.core.evaluation import events_out
from elastream.core.joining import joined
from elastream.figures import new_figure, save
from elastream.policies.slo import Slo
from elastream.predictors.quantiles import HIGH, LOW

if TYPE_CHECKING:
    from elastream.control.run import Result
    from elastream.core.stats import IntervalStats
    from elastream.predictors.backtest import Backtest
    from elastream.workloads.traces import Trace

INPUT, FORECAST, OUTPUT = "0.6", "#c8500a", "#1f5fa8"
BAND = {"color": FORECAST, "alpha": 0.18, "linewidth": 0, "label": "90 % band"}
MOST_BESIDE_TITLE = 6
"""Entries of a legend."""
SHORTEST_SECONDS = 1.0
"""Counts of less time than this are mostly chance: intervals are drawn together."""


def draw_run(result: Result, file: Path) -> Path:
    """Draw input and forecast, throughput, replicas, queues and latency; returns the file."""
    figure = new_figure(11, 11)
    panels = figure.subplots(5, 1, sharex=True)
    stats = _longer(result.stats)
    ends = np.cumsum([each.duration for each in stats])
    _input(panels[0], result)
    _throughput(panels[1], result, stats, ends)
    _replicas(panels[2], result)
    _queues(panels[3], result, stats, ends)
    _latency(panels[4], result, stats, ends)
    for axes in panels:
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
        _legend(axes)
    panels[-1].set_xlabel("seconds")
    run = result.run
    figure.suptitle(
        f"{result.topology.name}: {run.policy.name} with {run.predictor.name}",
        x=0.01,
        ha="left",
    )
    return save(figure, file)


def draw_comparison(results: Mapping[str, Result], file: Path) -> Path:
    """Draw runs on the same input over each other; returns the file."""
    figure = new_figure(11, 9)
    panels = figure.subplots(4, 1, sharex=True)
    first = next(iter(results.values()))
    _input(panels[0], first)
    pools = sum(operator.pool for operator in first.run.application.topology.operators)
    panels[1].axhline(pools, color=INPUT, linestyle=":", label="deployed")
    colours = (OUTPUT, FORECAST, "#2b8a3e", "#7048a8")
    for (name, result), colour in zip(results.items(), colours, strict=False):
        stats = _longer(result.stats)
        ends = np.cumsum([each.duration for each in stats])
        exact = np.cumsum([each.duration for each in result.stats])
        active = [sum(of.active for of in each.operators.values()) for each in result.stats]
        waiting = [each.held + sum(of.queued for of in each.operators.values()) for each in stats]
        p99 = [1000 * each.latency.p99 if each.latency else np.nan for each in stats]
        _steps(panels[1], exact, active, colour, name)
        _steps(panels[2], ends, waiting, colour, name)
        _steps(panels[3], ends, p99, colour, name)
    titles = ("replicas, all operators", "waiting (events)", "latency, p99 (ms)")
    for axes, title in zip(panels[1:], titles, strict=True):
        axes.set_title(title, loc="left", fontsize=10)
    for axes in panels:
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
        _legend(axes)
    panels[-1].set_xlabel("seconds")
    return save(figure, file)


def _legend(axes: Any) -> None:
    """Beside the title, where it hides nothing, if it fits there."""
    entries = len(axes.get_legend_handles_labels()[0])
    if entries > MOST_BESIDE_TITLE:
        axes.legend(loc="upper right", ncols=4, frameon=False, fontsize=8)
        return
    place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
    axes.legend(ncols=max(entries, 1), frameon=False, fontsize=8, **place)


def _longer(stats: Sequence[IntervalStats]) -> list[IntervalStats]:
    """What was measured, in intervals that are long enough to be drawn."""
    found: list[IntervalStats] = []
    parts: list[IntervalStats] = []
    for each in stats:
        parts.append(each)
        if sum(part.duration for part in parts) >= SHORTEST_SECONDS * (1 - 1e-9):
            found.append(joined(parts, len(found)))
            parts = []
    return [*found, joined(parts, len(found))] if parts else found


def _input(axes: Any, result: Result) -> None:
    trace = result.run.trace
    seconds = trace.times - trace.times[0]
    axes.plot(seconds, trace.rates, color=INPUT, linewidth=2, label="input")
    made = [
        (cycle.time, cycle.stats.duration, cycle.forecast)
        for cycle in result.cycles
        if cycle.forecast and cycle.stats
    ]
    # A forecast is of the interval after the cycle that made it.
    begins, rates = [at for at, _, _ in made], [of.values[0] / td for _, td, of in made]
    axes.step(begins, rates, where="post", color=FORECAST, linewidth=1.4, label="forecast")
    banded = [(at, td, of.quantiles) for at, td, of in made if of.quantiles]
    if banded:
        times = [at for at, _, _ in banded]
        low, high = ([of[level][0] / td for _, td, of in banded] for level in (LOW, HIGH))
        axes.fill_between(times, low, high, step="post", **BAND)
    quality = BandQuality.over(result.cycles)
    held = _held(quality.coverage, quality.pinball) if quality else ""
    axes.set_title(f"input (events/s){held}", loc="left", fontsize=10)


def _throughput(axes: Any, result: Result, stats: Sequence[IntervalStats], ends: Any) -> None:
    left = [events_out(result.topology, of) / of.duration for of in stats]
    _steps(axes, ends, [of.input / of.duration for of in stats], INPUT, "sent by the sources")
    _steps(axes, ends, left, OUTPUT, "processed to the end")
    axes.set_title("throughput (events/s)", loc="left", fontsize=10)


def _replicas(axes: Any, result: Result) -> None:
    ends = np.cumsum([stats.duration for stats in result.stats])
    totals = [sum(of.active for of in stats.operators.values()) for stats in result.stats]
    _steps(axes, ends, totals, OUTPUT, "active")
    pools = sum(operator.pool for operator in result.topology.operators)
    axes.axhline(pools, color=INPUT, linestyle=":", label="deployed")
    axes.set_title("replicas, all operators", loc="left", fontsize=10)


def _queues(axes: Any, result: Result, stats: Sequence[IntervalStats], ends: Any) -> None:
    for name in result.topology.by_name:
        axes.plot(ends, [of.operators[name].queued for of in stats], label=name, linewidth=1)
    held = [sum(source.queued for source in of.sources.values()) for of in stats]
    if any(held):
        axes.plot(ends, held, color=INPUT, label="held back at the source")
    axes.set_title("queued at the end of the interval (events)", loc="left", fontsize=10)


def _latency(axes: Any, result: Result, stats: Sequence[IntervalStats], ends: Any) -> None:
    policy = result.run.policy
    if isinstance(policy, Slo):
        label = f"the objective, at p{100 * policy.quantile:g}"
        objective = 1000 * policy.objective
        axes.axhline(objective, color="0.4", linestyle="--", linewidth=1, label=label)
    seen = [of.latency for of in stats]
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
        _band(axes, seconds, result)
        held = _held(result.coverage, result.pinball)
        title = f"{result.model}: RMSE {result.rmse:,.1f}{held}"
        axes.set_title(title, loc="left", fontsize=10)
        # A wild forecast would flatten all the others; it leaves the panel instead.
        axes.set_ylim(0, top)
    panels[0].legend(loc="upper right", ncols=3, frameon=False)
    figure.supxlabel("seconds from the start")
    figure.supylabel("events per sample")
    return save(figure, folder / "backtest.png")


def _band(axes: Any, seconds: Any, result: Backtest) -> None:
    """What the truth is expected to be in, nine times out of ten."""
    banded = dict(BAND)
    for row, origin in enumerate(result.origins):
        low, high = result.quantiles[LOW][row], result.quantiles[HIGH][row]
        if np.isfinite(low).all():
            axes.fill_between(seconds[origin : origin + len(low)], low, high, **banded)
            banded["label"] = None


def _held(coverage: float | None, pinball: float | None) -> str:
    """How good a band is, after what it is the band of."""
    if coverage is None or pinball is None:
        return ""
    return f", {coverage:.0%} in the band, pinball loss {pinball:,.1f}"


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
