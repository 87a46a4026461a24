"""Draws what `benchmarks.attached` has measured: one run of every way over time, and all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elastream.figures import new_figure, save

COLOURS = {
    "attach": "tab:red",
    "dynamic": "tab:blue",
    "lean": "tab:cyan",
    "reactive": "tab:green",
    "slots": "tab:orange",
    "max": "0.25",
    "mean": "0.6",
}
SECONDS = (2, 5, 10, 20, 50, 100)
APART = 0.035
"""Between the lines of two ways with as many executors."""


def draw(
    cells: Mapping[str, Sequence[Mapping[str, Any]]], names: Mapping[str, str], file: Path
) -> None:
    """Input, executors and latency of the last run of every way; cost and p99 of every run."""
    figure = new_figure(13, 8)
    axes = figure.subplot_mosaic(
        [["input", "all"], ["executors", "all"], ["latency", "all"]], width_ratios=[2, 1]
    )
    for name in ("executors", "latency"):
        axes[name].sharex(axes["input"])
    setting, flow = _any(cells)["setting"], _any(cells)["rates"]
    warm_up = len(flow) - int(setting["seconds"])
    axes["input"].plot([second - warm_up for second in range(len(flow))], flow, color="0.4")
    for place, kind in enumerate(kind for kind in COLOURS if kind in cells):
        look = {
            "color": COLOURS[kind],
            "linewidth": 2.5 if kind == "attach" else 1.2,
            "zorder": 5 if kind == "attach" else 2,
        }
        runs = cells[kind]
        counts = [count - APART * place for count in runs[-1]["counts"]]
        axes["executors"].step(runs[-1]["times"], counts, where="post", **look)
        when, _, longest = zip(*runs[-1]["commits"], strict=True)
        axes["latency"].plot(when, longest, **look)
        costs, tails = ([run[name] for run in runs] for name in ("executor_seconds", "p99"))
        axes["all"].scatter(costs, tails, color=COLOURS[kind], label=names[kind], zorder=3)
    titles = {
        "input": "input (rows/s)",
        "executors": "executors (processes)",
        "latency": "longest latency of a batch's rows (s)",
        "all": "every run: executor-seconds and p99 latency (s)",
    }
    for name, title in titles.items():
        axes[name].set_title(title, loc="left", fontsize=10)
    axes["executors"].set_ylim(0, setting["most"] + 0.5)
    for name in ("latency", "all"):
        axes[name].set_yscale("log")
        axes[name].set_yticks(SECONDS, labels=[str(seconds) for seconds in SECONDS])
        axes[name].minorticks_off()
    axes["latency"].set_xlabel("seconds")
    axes["input"].set_xlim(0, int(setting["seconds"]))
    axes["all"].set_xlim(left=0)
    axes["all"].legend(frameon=False, fontsize=8, loc="upper left")
    save(figure, file)


def _any(cells: Mapping[str, Sequence[Mapping[str, Any]]]) -> Mapping[str, Any]:
    return next(iter(cells.values()))[-1]
