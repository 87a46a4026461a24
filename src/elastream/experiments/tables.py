"""Published beside measured, cell by cell: as rows, as CSV, as Markdown."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from elastream.experiments.base import MEASURES, Outcome


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one row."""

    label: str
    measure: str
    published: float | None
    measured: float | None


def cells(outcome: Outcome) -> list[list[Cell]]:
    """The table, row by row."""
    return [
        [
            Cell(row.label, measure, row.published.get(measure), found[measure])
            for measure in outcome.experiment.measures
        ]
        for row, found in zip(outcome.experiment.rows, outcome.measured(), strict=True)
    ]


def orderings(outcome: Outcome) -> list[tuple[str, bool]]:
    """Every ordering that the paper published, in words, and whether it came out.

    Rows are compared with their neighbours in the published order of each measure, and as the
    paper's claims say; equal numbers claim nothing.
    """
    table = cells(outcome)
    by_name = {(cell.label, cell.measure): cell for row in table for cell in row}
    pairs = []
    for column in zip(*table, strict=True):
        known = sorted((c for c in column if c.published is not None), key=_published)
        pairs += [(a, b) for a, b in pairwise(known) if _published(a) < _published(b)]
    for claim in outcome.experiment.claims:
        pairs.append((by_name[claim.lower, claim.measure], by_name[claim.higher, claim.measure]))
    return [_compared(low, high) for low, high in pairs]


def write_csv(outcome: Outcome, target: Path) -> None:
    """One line per cell, for programs."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "measure", "published", "measured"])
        for line in cells(outcome):
            for cell in line:
                numbers = ["" if x is None else x for x in (cell.published, cell.measured)]
                writer.writerow([cell.label, cell.measure, *numbers])


def markdown(outcome: Outcome) -> str:
    """One line per row, each cell as `published / measured`."""
    titles = [MEASURES[measure] for measure in outcome.experiment.measures]
    lines = [
        f"# {outcome.experiment.title}",
        f"Published / measured, on {outcome.source}.",
        "",
        "| | " + " | ".join(titles) + " |",
        "| --- |" + " ---: |" * len(titles),
    ]
    for row in cells(outcome):
        pairs = [f"{shown(cell.published)} / {shown(cell.measured)}" for cell in row]
        lines.append(f"| {row[0].label} | " + " | ".join(pairs) + " |")
    return "\n".join(lines) + "\n"


def shown(value: float | None) -> str:
    """A number as a table shows it; a dash for none.

    >>> shown(0.5), shown(196962.95), shown(None)
    ('0.500', '196,963', '-')
    """
    if value is None:
        return "-"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def _published(cell: Cell) -> float:
    return cell.published or 0.0


def _compared(low: Cell, high: Cell) -> tuple[str, bool]:
    """In words, and whether the lower one is not above the higher one by more than rounding."""
    published = (
        "" if low.published is None else f" ({shown(low.published)}, {shown(high.published)})"
    )
    text = (
        f"{MEASURES[low.measure]}: {low.label} below {high.label}{published}; "
        f"measured {shown(low.measured)} and {shown(high.measured)}"
    )
    return text, (low.measured or 0.0) <= (high.measured or 0.0) + 5e-4
