"""The figures of an experiment: what every row did over time, as numbers to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elastream.experiments.base import Outcome
from elastream.experiments.work import Curve

INPUT = "input"
"""The label of the line that all others answer to."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row in one panel: a level per span of time."""

    label: str
    times: list[float]
    """The ends of the spans, in seconds."""
    values: list[float | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines that share an axis."""

    title: str
    lines: list[Line]
    logarithmic: bool = False


def panels(outcome: Outcome) -> list[Panel]:
    """One for everything that was followed, with a line for each row."""
    labels = [row.label for row in outcome.experiment.rows]
    followed = zip(*(result.curves for result in outcome.results), strict=True)
    return [_panel(labels, curves) for curves in followed]


def _panel(labels: Sequence[str], curves: Sequence[Curve]) -> Panel:
    first = curves[0]
    by_row = dict(zip(labels, curves, strict=True))
    baseline = by_row.get(first.relative_to or "")
    lines = [
        _line(label, curve, _over(curve.values, baseline.values) if baseline else curve.values)
        for label, curve in by_row.items()
    ]
    if first.given is not None:
        lines.insert(0, _line(INPUT, first, first.given))
    title = f"{first.title}, relative to {first.relative_to}" if baseline else first.title
    return Panel(title, lines, first.logarithmic)


def _over(values: Sequence[float | None], baseline: Sequence[float | None]) -> list[float | None]:
    """Each by the one at the same time; none where there is nothing to compare with."""
    return [
        value / base if value is not None and base else None
        for value, base in zip(values, baseline, strict=False)
    ]


def _line(label: str, curve: Curve, values: Sequence[float | None]) -> Line:
    return Line(label, list(curve.times), list(values))
