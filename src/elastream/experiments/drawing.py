"""The panels of an experiment as a picture, and as a page that answers to the mouse."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from elastream.experiments.curves import INPUT, Panel
from elastream.figures import new_figure, save


def draw(panels: list[Panel], target: Path) -> Path:
    """Write a PNG file."""
    figure = new_figure(11, 0.6 + 3.0 * len(panels))
    end = max(time for panel in panels for line in panel.lines for time in line.times)
    unit, name = (1.0, "seconds") if end < 10_000 else (3600.0, "hours")
    for axes, panel in zip(figure.subplots(len(panels), 1, sharex=True), panels, strict=True):
        for line in panel.lines:
            values = [np.nan if value is None else value for value in line.values]
            style = {"color": "0.75", "linewidth": 3} if line.label == INPUT else {}
            edges = [0.0, *(time / unit for time in line.times)]
            axes.stairs(values, edges, baseline=None, label=line.label, **style)
        axes.set_title(panel.title, loc="left", fontsize=10)
        if panel.logarithmic:
            axes.set_yscale("log")
            # Room for the legend.
            axes.set_ylim(top=4 * axes.get_ylim()[1])
        else:
            axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
        axes.margins(x=0)
        axes.legend(loc="upper right", ncols=8, frameon=False, fontsize=8)
    axes.set_xlabel(name)
    return save(figure, target)


def page(title: str, panels: list[Panel]) -> str:
    """HTML that needs no network: values under the mouse, lines that a click hides."""
    template = files("elastream.experiments").joinpath("figure.html").read_text("utf-8")
    # "</" would end the script early, whatever a label may be.
    data = json.dumps([asdict(panel) for panel in panels]).replace("</", "<\\/")
    return template.replace("{{title}}", escape(title)).replace("{{panels}}", data)
