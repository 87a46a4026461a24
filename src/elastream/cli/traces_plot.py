"""Input rates over time, one panel per trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elastream.figures import new_figure, save
from elastream.workloads.traces import Trace

COLOUR = "#1f5fa8"


def draw(traces: Mapping[str, Trace], target: Path) -> Path:
    """Write the PNG file, and say where it is."""
    rows = -(-len(traces) // 2) if len(traces) > 1 else 1
    columns = 2 if len(traces) > 1 else 1
    figure = new_figure(11, 1.0 + 1.7 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (name, trace) in zip(panels, traces.items(), strict=False):
        unit, label = (1.0, "s") if trace.duration < 10_000 else (86_400.0, "days")
        axes.plot((trace.times - trace.times[0]) / unit, trace.rates, color=COLOUR, linewidth=0.9)
        axes.set_title(f"{name} ({label})", loc="left", fontsize=10)
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
    for axes in list(panels)[len(traces) :]:
        axes.set_axis_off()
    figure.supylabel("events per second")
    return save(figure, target)
